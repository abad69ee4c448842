// SPDX-License-Identifier: Apache-2.0

import { Button, EmptyState, EmptyStateBody, Spinner } from '@patternfly/react-core';
import { QueryCache, QueryClient, QueryClientProvider, useQuery } from '@tanstack/react-query';
import { Component, type ReactNode, Suspense, lazy, useMemo, useState } from 'react';
import { BrowserRouter, Route, Routes } from 'react-router';

import { ApiError, Client, pollDelay } from '../api/client';
import type { Session } from '../api/types';
import { Failure, Loading } from '../components/states';
import { firstView } from '../model/views';
import { type Api, ApiProvider } from './api';
import { Shell } from './Shell';
import { SignIn } from './SignIn';

// Each view is a file of its own: the first one does not wait for the others.
const VIEWS = {
  overview: () => import('../pages/Overview'),
  hosts: () => import('../pages/Hosts'),
  host: () => import('../pages/HostView'),
  instance: () => import('../pages/InstanceView'),
  reservations: () => import('../pages/Reservations'),
  whatif: () => import('../pages/WhatIf'),
  balloons: () => import('../pages/Balloons'),
  events: () => import('../pages/Events'),
  jobs: () => import('../pages/Jobs'),
  evidence: () => import('../pages/Evidence'),
} as const;

const Overview = lazy(async () => ({ default: (await VIEWS.overview()).Overview }));
const Hosts = lazy(async () => ({ default: (await VIEWS.hosts()).Hosts }));
const HostView = lazy(async () => ({ default: (await VIEWS.host()).HostView }));
const InstanceView = lazy(async () => ({ default: (await VIEWS.instance()).InstanceView }));
const Reservations = lazy(async () => ({ default: (await VIEWS.reservations()).Reservations }));
const WhatIf = lazy(async () => ({ default: (await VIEWS.whatif()).WhatIf }));
const Balloons = lazy(async () => ({ default: (await VIEWS.balloons()).Balloons }));
const Events = lazy(async () => ({ default: (await VIEWS.events()).Events }));
const Jobs = lazy(async () => ({ default: (await VIEWS.jobs()).Jobs }));
const Evidence = lazy(async () => ({ default: (await VIEWS.evidence()).Evidence }));

const TOKEN = 'vsched.token';
const SESSION_MS = 60_000;

/** The page below its <base>, and the root of the API above it. */
const BASE = new URL(document.baseURI);
const ROOT = new URL('..', BASE).href;
const PATH = BASE.pathname.replace(/\/$/, '');

// The file of the first view is loaded while the session is asked for.
const FIRST = firstView(window.location.pathname.slice(PATH.length));
if (FIRST !== null) {
  // Its failure is shown where the view would be.
  VIEWS[FIRST]().catch(() => undefined);
}

export function App() {
  const [token, setToken] = useState(() => window.sessionStorage.getItem(TOKEN));
  // One of each for every token: nothing of one user is shown to another.
  const { client, cache } = useMemo(() => made(token), [token]);
  const accept = (found: string | null) => {
    if (found === null) {
      window.sessionStorage.removeItem(TOKEN);
    } else {
      window.sessionStorage.setItem(TOKEN, found);
    }
    setToken(found);
  };
  return (
    <QueryClientProvider client={cache} key={token}>
      <Identified client={client} token={token} accept={accept} />
    </QueryClientProvider>
  );
}

function made(token: string | null): { client: Client; cache: QueryClient } {
  const client = new Client(ROOT, () => token);
  const cache: QueryClient = new QueryClient({
    queryCache: new QueryCache({
      onError: (problem, query) => {
        if (
          problem instanceof ApiError &&
          problem.status === 401 &&
          query.queryKey[0] !== 'session'
        ) {
          // The token has expired.
          void cache.invalidateQueries({ queryKey: ['session'] });
        }
      },
    }),
    defaultOptions: {
      // Polls repeat by themselves; navigator.onLine knows nothing of proxies.
      queries: { retry: false, networkMode: 'always', staleTime: 1_000 },
      mutations: { retry: false, networkMode: 'always' },
    },
  });
  return { client, cache };
}

function Identified({
  client,
  token,
  accept,
}: {
  client: Client;
  token: string | null;
  accept: (token: string | null) => void;
}) {
  const session = useQuery({
    queryKey: ['session'],
    queryFn: async ({ signal }) =>
      (await client.get<{ session: Session }>('ui/session', { signal })).session,
    refetchInterval: () => pollDelay(SESSION_MS, client.connection.failures),
  });
  const found = session.data;
  const api = useMemo<Api | null>(() => {
    if (found === undefined) {
      return null;
    }
    const allowed = new Set(found.allowed);
    return {
      client,
      session: found,
      may: (rule) => allowed.has(rule),
      signOut: found.auth_strategy === 'keystone' ? () => accept(null) : null,
    };
  }, [found, client, accept]);
  if (api === null) {
    return (
      <main className="vs-signin">
        {session.error === null ? (
          <Spinner aria-label="Loading" />
        ) : (
          <Failure error={session.error} retry={session.refetch} />
        )}
      </main>
    );
  }
  if (api.session.auth_strategy === 'keystone' && !api.session.authenticated) {
    return (
      <SignIn
        refused={token !== null}
        problem={token === null ? null : api.session.problem}
        accept={accept}
      />
    );
  }
  return (
    <ApiProvider value={api}>
      <BrowserRouter basename={PATH}>
        <Shell>
          <Guard>
            <Suspense fallback={<Loading lines={8} />}>
              <Routes>
                <Route path="/" element={<Overview />} />
                <Route path="/hosts" element={<Hosts />} />
                <Route path="/hosts/:name" element={<HostView />} />
                <Route path="/instances/:uuid" element={<InstanceView />} />
                <Route path="/reservations" element={<Reservations />} />
                <Route path="/whatif" element={<WhatIf />} />
                <Route path="/balloons" element={<Balloons />} />
                <Route path="/events" element={<Events />} />
                <Route path="/jobs" element={<Jobs />} />
                <Route path="/evidence" element={<Evidence />} />
                <Route path="*" element={<Nowhere />} />
              </Routes>
            </Suspense>
          </Guard>
        </Shell>
      </BrowserRouter>
    </ApiProvider>
  );
}

function Nowhere() {
  return (
    <EmptyState headingLevel="h1" titleText="There is no such view">
      <EmptyStateBody>The menu has all of them.</EmptyStateBody>
    </EmptyState>
  );
}

/** A view that fails leaves the menu, and says so. */
class Guard extends Component<{ children: ReactNode }, { problem: Error | null }> {
  override state = { problem: null as Error | null };

  static getDerivedStateFromError(problem: Error) {
    return { problem };
  }

  override render() {
    const { problem } = this.state;
    if (problem === null) {
      return this.props.children;
    }
    return (
      <EmptyState headingLevel="h1" titleText="This view has failed" status="danger">
        <EmptyStateBody>{problem.message}</EmptyStateBody>
        <Button variant="secondary" onClick={() => window.location.reload()}>
          Load it again
        </Button>
      </EmptyState>
    );
  }
}
