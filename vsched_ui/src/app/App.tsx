// SPDX-License-Identifier: Apache-2.0

import { Button, EmptyState, EmptyStateBody, Spinner } from '@patternfly/react-core';
import {
  QueryCache,
  QueryClient,
  QueryClientProvider,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query';
import {
  Component,
  type ComponentType,
  type LazyExoticComponent,
  type ReactNode,
  Suspense,
  lazy,
  useEffect,
  useMemo,
  useState,
} from 'react';
import { BrowserRouter, Navigate, Route, Routes } from 'react-router';

import { ApiError, Client, NotPermitted } from '../api/client';
import { Head } from '../components/Section';
import { Failure, Loading, NotAllowed } from '../components/states';
import { rightsOf } from '../model/rights';
import { VIEWS, type View, menuOf, missing, viewAt } from '../model/views';
import { type Api, ApiProvider, useApi, useConnection } from './api';
import { Away } from './Away';
import { sessionOf } from './session';
import { Shell } from './Shell';
import { SignIn } from './SignIn';

// Each view is a file of its own: the first one does not wait for the others.
const FILES: Record<View, () => Promise<{ default: ComponentType }>> = {
  overview: async () => ({ default: (await import('../pages/Overview')).Overview }),
  hosts: async () => ({ default: (await import('../pages/Hosts')).Hosts }),
  host: async () => ({ default: (await import('../pages/HostView')).HostView }),
  instance: async () => ({ default: (await import('../pages/InstanceView')).InstanceView }),
  reservations: async () => ({ default: (await import('../pages/Reservations')).Reservations }),
  whatif: async () => ({ default: (await import('../pages/WhatIf')).WhatIf }),
  balloons: async () => ({ default: (await import('../pages/Balloons')).Balloons }),
  events: async () => ({ default: (await import('../pages/Events')).Events }),
  jobs: async () => ({ default: (await import('../pages/Jobs')).Jobs }),
  evidence: async () => ({ default: (await import('../pages/Evidence')).Evidence }),
};

const COMPONENTS = Object.fromEntries(
  Object.entries(FILES).map(([view, load]) => [view, lazy(load)]),
) as Record<View, LazyExoticComponent<ComponentType>>;

const VIEW_NAMES = Object.keys(VIEWS) as View[];

const TOKEN = 'vsched.token';

/** The page below its <base>, and the root of the API above it. */
const BASE = new URL(document.baseURI);
const ROOT = new URL('..', BASE).href;
const PATH = BASE.pathname.replace(/\/$/, '');

// The file of the first view is loaded while the session is asked for. A view
// that is loaded is shown at once: one that React loads is shown only after
// something in its place, and sends its requests after that.
const FIRST = viewAt(window.location.pathname.slice(PATH.length));
const loaded = new Map<View, ComponentType>();
if (FIRST !== null) {
  FILES[FIRST]().then(
    (file) => loaded.set(FIRST, file.default),
    // Shown where the view would be, when that is loaded once more.
    () => undefined,
  );
}

// The session is asked for before anything is shown.
const STORED = window.sessionStorage.getItem(TOKEN);
const OPENED = made(STORED);
void OPENED.cache.prefetchQuery(sessionOf(OPENED.client));

export function App() {
  const [token, setToken] = useState(STORED);
  // One of each for every token: nothing of one user is shown to another.
  const { client, cache } = useMemo(
    () => (token === STORED ? OPENED : made(token)),
    [token],
  );
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
  const session = useQuery(sessionOf(client));
  const { failures } = useConnection(client);
  const found = session.data;
  const api = useMemo<Api | null>(() => {
    if (found === undefined) {
      return null;
    }
    const rights = rightsOf(found);
    client.rights = rights;
    return {
      client,
      session: found,
      rights,
      may: (rule) => rights.all.has(rule),
      signOut: found.auth_strategy === 'keystone' ? () => accept(null) : null,
    };
  }, [found, client, accept]);
  const rights = api?.rights;
  const cache = useQueryClient();
  useEffect(() => {
    // What was not requested so far may be allowed now.
    void cache.invalidateQueries({
      predicate: (query) => query.state.error instanceof NotPermitted,
    });
  }, [cache, rights]);
  if (api === null) {
    return (
      <main className="vs-signin">
        <Away client={client} shown={false} />
        {/* The banner says it if there is no answer. */}
        {session.error === null || failures > 0 ? (
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
                {VIEW_NAMES.map((view) => (
                  <Route
                    key={view}
                    path={VIEWS[view].path}
                    element={<Permitted key={view} view={view} />}
                  />
                ))}
                <Route path="*" element={<Nowhere />} />
              </Routes>
            </Suspense>
          </Guard>
        </Shell>
      </BrowserRouter>
    </ApiProvider>
  );
}

/** A view, or why its user may not read it. */
function Permitted({ view }: { view: View }) {
  const { rights } = useApi();
  // The same as long as it is shown: another one would lose its state.
  const [Shown] = useState(() => loaded.get(view) ?? COMPONENTS[view]);
  const rules = missing(view, rights);
  if (rules.length === 0) {
    return <Shown />;
  }
  const first = menuOf(rights)[0];
  // The address of the page itself leads to what may be read.
  if (view === 'overview' && first !== undefined) {
    return <Navigate to={first.path} replace />;
  }
  const { title, within } = VIEWS[view];
  return (
    <>
      <Head title={title ?? VIEWS[within].title ?? ''} />
      <NotAllowed rules={rules}>
        {first === undefined
          ? 'None of the views may be read with this token.'
          : 'The menu has the views that may be read.'}
      </NotAllowed>
    </>
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
