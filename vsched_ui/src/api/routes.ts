// SPDX-License-Identifier: Apache-2.0

// The routes of the API, as the types that are made from its OpenAPI document
// have them: what a request takes, and what it is answered with.

import type { components, paths } from './schema';

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

export type Path = keyof paths;

/** What is documented of a route; never of one that there is not. */
type Operation<M extends Method, P extends Path> =
  Lowercase<M> extends keyof paths[P] ? paths[P][Lowercase<M>] : never;

/** The paths that take a method. */
export type PathOf<M extends Method> = {
  [P in Path]: Operation<M, P> extends { responses: unknown } ? P : never;
}[Path];

/** The JSON of an answer; null for one without. */
type Json<R> = R extends { content: { 'application/json': infer B } }
  ? B
  : null;

type Successful = 200 | 201 | 202 | 204;

type SuccessOf<R> = {
  [S in keyof R]: S extends Successful ? Json<R[S]> : never;
}[keyof R];

/** What a route answers. */
export type Answer<M extends Method, P extends Path> =
  Operation<M, P> extends { responses: infer R } ? SuccessOf<R> : never;

/** Lists are read-only, and one value is a list of itself. */
type Given<V> = V extends readonly (infer I)[] ? readonly I[] | I : V;

/** The filters of a route. Markers are as links to the next page have them. */
export type QueryOf<M extends Method, P extends Path> =
  Operation<M, P> extends { parameters: { query?: infer Q } }
    ? { [K in keyof Q]?: K extends 'marker' ? string : Given<NonNullable<Q[K]>> }
    : never;

type VariablesOf<M extends Method, P extends Path> =
  Operation<M, P> extends { parameters: { path: infer V } } ? V : never;

export type BodyOf<M extends Method, P extends Path> =
  Operation<M, P> extends {
    requestBody: { content: { 'application/json': infer B } };
  }
    ? B
    : never;

/** A property that is there if the route takes it. */
type Needed<K extends string, V> = [V] extends [never]
  ? { [N in K]?: never }
  : { [N in K]: V };

/** What a request to a route has. */
export type Needs<M extends Method, P extends Path> = Needed<
  'path',
  VariablesOf<M, P>
> &
  Needed<'body', BodyOf<M, P>> & { query?: QueryOf<M, P> };

/** Paths of lists that are answered page by page. */
export type ListPath = {
  [P in PathOf<'GET'>]: Answer<'GET', P> extends { links: unknown[] }
    ? P
    : never;
}[PathOf<'GET'>];

/** A page of a list: its rows are below the name of the list. */
export type ListAnswer = {
  links: components['schemas']['Link'][];
} & Record<string, unknown>;

/** The rows of a list. */
export type Row<P extends ListPath> = {
  [K in keyof Answer<'GET', P>]: K extends 'links'
    ? never
    : Answer<'GET', P>[K] extends (infer R)[]
      ? R
      : never;
}[keyof Answer<'GET', P>];

/** The name of a list, below which its answers have the rows. */
export function nameOf(path: ListPath): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** A name as a part of a path. */
export function segment(name: string): string {
  return encodeURIComponent(name);
}

/** A path with its variables, without the slash at its beginning. */
export function filled(
  path: Path,
  variables: Readonly<Record<string, string>> = {},
): string {
  return path.slice(1).replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = variables[name];
    if (value === undefined) {
      throw new Error(`${path} needs ${name}`);
    }
    return segment(value);
  });
}
