// SPDX-License-Identifier: Apache-2.0

// Short names of what the API answers. schema.d.ts is made from its OpenAPI
// document by "tools/check-generated.sh --write".

import type { components } from './schema';

type Schemas = components['schemas'];

export type Backend = Schemas['HostBackend'];
export type Balloon = Schemas['Balloon'];
export type BalloonChange = Schemas['BalloonChange'];
export type BalloonCreate = Schemas['BalloonCreate'];
export type Bucket = Schemas['UsageBucket'];
export type DetailedHost = Schemas['DetailedHost'];
export type Difference = Schemas['HostDifference'];
export type ErrorPoint = Schemas['ErrorPoint'];
export type ErrorProfile = Schemas['DetailedErrorProfile'];
export type EvaluatedHost = Schemas['EvaluatedHost'];
export type Evaluation = Schemas['Evaluation'];
export type EvaluationCreate = Schemas['EvaluationCreate'];
export type Event = Schemas['Event'];
export type Finding = Schemas['HostFinding'];
export type Host = Schemas['Host'];
export type HostSample = Schemas['HostUsageSample'];
export type Instance = Schemas['Instance'];
export type Job = Schemas['Job'];
export type Link = Schemas['Link'];
export type OverheadProfile = Schemas['DetailedOverheadProfile'];
export type Price = Schemas['OverheadPrice'];
export type Profile = Schemas['ErrorProfile'];
export type Reservation = Schemas['Reservation'];
export type ReservationCreate = Schemas['ReservationCreate'];
export type Sample = Schemas['UsageSample'];
export type Snapshot = Schemas['Snapshot'];
export type SnapshotHost = Schemas['SnapshotHost'];

/** The fields of an override that is asked for. */
export type Wanted = Schemas['EvaluationOverride'];

/** Who the user is, and what the policies allow. */
export type Session = Schemas['Session'];
