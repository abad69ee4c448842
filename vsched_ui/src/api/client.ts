// SPDX-License-Identifier: Apache-2.0

import { type Rights, allows, policyOf } from '../model/rights';
import {
  type Answer,
  type ListAnswer,
  type ListPath,
  type Method,
  type Needs,
  type PathOf,
  type QueryOf,
  filled,
} from './routes';

/** Values of a query; an array repeats its name. */
type Query = Record<
  string,
  string | number | boolean | readonly string[] | undefined
>;

interface Options {
  query?: Query;
  body?: unknown;
  /** The ETag that a change is based on. */
  ifMatch?: string;
  signal?: AbortSignal;
  /**
   * Whether the ETag of the answer stands for all of it, so that the same
   * object is returned while the server answers 304.
   */
  revalidate?: boolean;
  /** Whether a list is of use only if it is of all projects. */
  whole?: boolean;
}

/** What a request to a route takes. */
export type CallOptions<M extends Method, P extends PathOf<M>> = Needs<M, P> &
  Omit<Options, 'query' | 'body'>;

/** What a request for one page of a list takes. */
export interface PageOptions<P extends ListPath> {
  query: QueryOf<'GET', P>;
  limit: number;
  /** As the page before names it; null for the first. */
  marker: string | null;
  signal: AbortSignal;
}

/** Options that may be left out where none is needed. */
type CallArguments<M extends Method, P extends PathOf<M>> =
  Record<never, never> extends CallOptions<M, P>
    ? [options?: CallOptions<M, P>]
    : [options: CallOptions<M, P>];

/** One problem that the API names. */
export interface Fault {
  detail: string;
  code: string;
}

/** An answer that is an error. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly faults: readonly Fault[],
    readonly requestId: string | null,
    readonly retryAfterS: number | null,
  ) {
    super(faults.map((fault) => fault.detail).join('; '));
    this.name = 'ApiError';
  }

  get code(): string {
    return this.faults[0]?.code ?? '';
  }
}

/** A request that was not sent: the user may not read what it asks for. */
export class NotPermitted extends Error {
  constructor(readonly rule: string) {
    super(`policy ${rule} does not allow it`);
    this.name = 'NotPermitted';
  }
}

/** No answer at all. */
export class Unreachable extends Error {
  constructor(cause: unknown) {
    super('The API does not answer.', { cause });
    this.name = 'Unreachable';
  }
}

/** What the client knows of the connection. */
export interface Connection {
  /** Requests in a row that the service could not answer. */
  failures: number;
  /** When the first of them failed, in ms since the epoch. */
  since: number | null;
  reason: string;
}

const CONNECTED: Connection = { failures: 0, since: null, reason: '' };

/** Answers that say nothing about the request: the service is unavailable. */
const UNAVAILABLE = new Set([502, 503, 504]);

const MAX_TAGS = 64;
const TIMEOUT_MS = 20_000;

export class Client {
  connection: Connection = CONNECTED;
  /** By how much the clock of the server is ahead of this one's, in ms. */
  skewMs = 0;
  /** What the user may read; null until that is known. */
  rights: Rights | null = null;

  private readonly tags = new Map<string, { tag: string; body: unknown }>();
  private readonly listeners = new Set<() => void>();

  constructor(
    /** The root of the API; ends with a slash. */
    private readonly root: string,
    private readonly token: () => string | null,
    private readonly send: typeof fetch = (input, init) => fetch(input, init),
    private readonly now: () => number = Date.now,
  ) {}

  /** Call a function when the connection changes; returns how to stop. */
  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** The time of the server, in ms since the epoch. */
  serverNow(): number {
    return this.now() + this.skewMs;
  }

  /**
   * Send a request to a route of the API, return its answer.
   *
   * @throws what "get" and "request" throw.
   */
  call<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    ...[options]: CallArguments<M, P>
  ): Promise<Answer<M, P>> {
    const { path: variables, ...others } = (options ?? {}) as Options & {
      path?: Record<string, string>;
    };
    const address = filled(path, variables);
    return method === 'GET'
      ? this.get<Answer<M, P>>(address, others)
      : this.request<Answer<M, P>>(method, address, others);
  }

  /**
   * Read one page of a list.
   *
   * @throws what "get" throws.
   */
  page<P extends ListPath>(
    path: P,
    { query, limit, marker, signal }: PageOptions<P>,
  ): Promise<ListAnswer> {
    return this.get<ListAnswer>(filled(path), {
      query: { ...(query as Query), limit, marker: marker ?? undefined },
      signal,
    });
  }

  /**
   * Read something.
   *
   * @throws NotPermitted without a request, when the user may not read it.
   */
  private async get<T>(path: string, options: Options = {}): Promise<T> {
    const rule = policyOf(path);
    if (
      this.rights !== null &&
      rule !== null &&
      !allows(this.rights, rule, options.whole ?? false)
    ) {
      throw new NotPermitted(rule);
    }
    return this.request<T>('GET', path, options);
  }

  /**
   * Send a request, return its answer.
   *
   * @throws ApiError when the answer is an error.
   * @throws Unreachable when there is none.
   */
  private async request<T>(
    method: string,
    path: string,
    options: Options = {},
  ): Promise<T> {
    const url = this.root + path + search(options.query);
    const headers = new Headers({ Accept: 'application/json' });
    const token = this.token();
    if (token !== null) {
      headers.set('X-Auth-Token', token);
    }
    if (options.ifMatch !== undefined) {
      headers.set('If-Match', options.ifMatch);
    }
    // Another user may see another answer.
    const key = `${token ?? ''} ${url}`;
    const known = options.revalidate ? this.tags.get(key) : undefined;
    if (known !== undefined) {
      headers.set('If-None-Match', known.tag);
    }
    let body: string | undefined;
    if (options.body !== undefined) {
      headers.set('Content-Type', 'application/json');
      body = JSON.stringify(options.body);
    }
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    let answer: Response;
    try {
      answer = await this.send(url, {
        method,
        headers,
        body,
        cache: 'no-store',
        credentials: 'same-origin',
        redirect: 'error',
        signal: options.signal
          ? AbortSignal.any([options.signal, timeout])
          : timeout,
      });
      if (answer.status === 304 && known !== undefined) {
        this.succeed(answer);
        return known.body as T;
      }
      if (answer.ok) {
        const found = (
          answer.status === 204 ? null : await answer.json()
        ) as T;
        this.succeed(answer);
        this.keep(key, answer, found, options);
        return found;
      }
    } catch (problem) {
      if (options.signal?.aborted) {
        throw problem;
      }
      this.fail('The API does not answer.');
      throw new Unreachable(problem);
    }
    const error = await failure(answer);
    if (UNAVAILABLE.has(answer.status)) {
      this.fail(error.message);
    } else {
      this.succeed(answer);
    }
    throw error;
  }

  private keep(
    key: string,
    answer: Response,
    body: unknown,
    options: Options,
  ): void {
    const tag = answer.headers.get('ETag');
    if (!options.revalidate || tag === null) {
      return;
    }
    this.tags.delete(key);
    this.tags.set(key, { tag, body });
    if (this.tags.size > MAX_TAGS) {
      const oldest = this.tags.keys().next().value;
      if (oldest !== undefined) {
        this.tags.delete(oldest);
      }
    }
  }

  private succeed(answer: Response): void {
    const date = Date.parse(answer.headers.get('Date') ?? '');
    if (!Number.isNaN(date)) {
      // The header has whole seconds: half of one is the best guess.
      this.skewMs = date + 500 - this.now();
    }
    if (this.connection !== CONNECTED) {
      this.connection = CONNECTED;
      this.notify();
    }
  }

  private fail(reason: string): void {
    this.connection = {
      failures: this.connection.failures + 1,
      since: this.connection.since ?? this.now(),
      reason,
    };
    this.notify();
  }

  private notify(): void {
    for (const listener of this.listeners) {
      listener();
    }
  }
}

/** Return how long to wait before the next poll, in ms. */
export function pollDelay(everyMs: number, failures: number): number {
  if (failures === 0) {
    return everyMs;
  }
  // A page that shows nothing new asks at least every 10 s, or as rarely as
  // it did before.
  return Math.max(
    Math.min(everyMs, 10_000),
    Math.min(1_000 * 2 ** Math.min(failures - 1, 4), 10_000),
  );
}

/** Return the marker of the next page of a list, null on the last. */
export function nextMarker(
  links: readonly { rel: string; href: string }[],
): string | null {
  const next = links.find((link) => link.rel === 'next');
  if (next === undefined) {
    return null;
  }
  // The rest of the link is ours already; its host may be the proxy's.
  return new URL(next.href, 'http://api.invalid/').searchParams.get('marker');
}

function search(query: Query | undefined): string {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (Array.isArray(value)) {
      for (const one of value as readonly string[]) {
        found.append(name, one);
      }
    } else if (value !== undefined) {
      found.append(name, String(value));
    }
  }
  const text = found.toString();
  return text === '' ? '' : `?${text}`;
}

async function failure(answer: Response): Promise<ApiError> {
  let faults: Fault[] = [];
  let requestId = answer.headers.get('X-Openstack-Request-Id');
  try {
    const body = (await answer.json()) as {
      errors?: (Fault & { request_id?: string })[];
    };
    faults = (body.errors ?? []).map((one) => ({
      detail: String(one.detail),
      code: String(one.code),
    }));
    requestId ??= body.errors?.[0]?.request_id ?? null;
  } catch {
    // Not an answer of the API, such as that of a proxy.
  }
  if (faults.length === 0) {
    faults = [
      {
        detail: `the answer was ${answer.status} ${answer.statusText}`.trim(),
        code: '',
      },
    ];
  }
  const retry = Number(answer.headers.get('Retry-After'));
  return new ApiError(
    answer.status,
    faults,
    requestId,
    Number.isFinite(retry) && retry > 0 ? retry : null,
  );
}
