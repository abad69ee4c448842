// SPDX-License-Identifier: Apache-2.0

import {
  Button,
  EmptyState,
  EmptyStateActions,
  EmptyStateBody,
  EmptyStateFooter,
  Label,
  type LabelProps,
  Skeleton,
} from '@patternfly/react-core';
import { ExclamationCircleIcon } from '@patternfly/react-icons/dist/esm/icons/exclamation-circle-icon';
import { LockIcon } from '@patternfly/react-icons/dist/esm/icons/lock-icon';
import { SearchIcon } from '@patternfly/react-icons/dist/esm/icons/search-icon';
import type { ReactNode } from 'react';

import { ApiError, NotPermitted } from '../api/client';
import { outdated } from '../api/failures';
import type { Result } from '../api/hooks';
import { useApi } from '../app/api';
import { isConflict } from '../model/changes';
import { Moment } from './figures';

type Status = NonNullable<LabelProps['status']>;

const STATUSES: Record<string, Status> = {
  // Hosts
  up: 'success',
  down: 'danger',
  synced: 'success',
  waiting: 'info',
  // Reservations and orders
  applied: 'success',
  pending: 'info',
  degraded: 'warning',
  refused: 'danger',
  fits: 'success',
  // Profiles
  'good fit': 'success',
  'poor fit': 'warning',
  'in force': 'success',
  withdrawn: 'warning',
  'out of date': 'warning',
  // Targets
  met: 'success',
  missed: 'warning',
  // Jobs
  queued: 'info',
  running: 'info',
  done: 'success',
  failed: 'danger',
  // Events
  info: 'info',
  warning: 'warning',
  error: 'danger',
  // Findings
  note: 'info',
  problem: 'danger',
  // Balloons
  kept: 'success',
  trial: 'info',
  returning: 'info',
  reverted: 'warning',
};

/** A state as a word, with a colour and an icon. */
export function State({ of, title }: { of: string | null; title?: string }) {
  if (of === null) {
    return <span className="vs-unknown">–</span>;
  }
  const status = STATUSES[of];
  return (
    <Label
      isCompact
      variant="outline"
      title={title}
      {...(status === undefined ? { color: 'grey' } : { status })}
    >
      {of}
    </Label>
  );
}

/** Show data, or why there is none. What was read before stays. */
export function Loaded<T>({
  result,
  lines = 4,
  children,
}: {
  result: Pick<Result<T>, 'data' | 'error' | 'refetch'> &
    Partial<Pick<Result<T>, 'readAt'>>;
  lines?: number;
  children: (data: T) => ReactNode;
}) {
  if (result.data !== undefined) {
    return (
      <>
        <OutdatedNote of={result} />
        {children(result.data)}
      </>
    );
  }
  if (result.error !== null) {
    return <Failure error={result.error} retry={result.refetch} />;
  }
  return <Loading lines={lines} />;
}

/** Says that data which is shown could not be read again, and why. */
export function OutdatedNote({
  of,
  what = 'This',
}: {
  of: Pick<Result<unknown>, 'data' | 'error'> &
    Partial<Pick<Result<unknown>, 'readAt'>>;
  /** What it is, as the subject of a sentence in the singular. */
  what?: string;
}) {
  const { client } = useApi();
  const found = outdated(of, client.skewMs);
  if (found === null) {
    return null;
  }
  return (
    <p className="vs-note" role="status">
      {what} is not up to date
      {found.at !== null && (
        <>
          : it was read at <Moment at={found.at} />
        </>
      )}
      . It could not be read again: {found.error.message}
    </p>
  );
}

export function Loading({ lines = 4 }: { lines?: number }) {
  return (
    <div className="vs-loading" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <Skeleton
          key={index}
          width={index % 3 === 2 ? '60%' : '100%'}
          screenreaderText={index === 0 ? 'Loading' : ''}
        />
      ))}
    </div>
  );
}

export function Failure({
  error,
  retry,
}: {
  error: Error;
  retry?: () => unknown;
}) {
  if (error instanceof NotPermitted) {
    return <NotAllowed rules={[error.rule]} />;
  }
  const title =
    error instanceof ApiError
      ? {
          401: 'Not signed in',
          403: 'Not allowed',
          404: 'Not found',
        }[error.status]
      : undefined;
  return (
    <EmptyState
      variant="sm"
      headingLevel="h3"
      titleText={title ?? 'This could not be read'}
      icon={ExclamationCircleIcon}
      status="danger"
    >
      <EmptyStateBody>
        {error.message}
        {error instanceof ApiError && error.requestId !== null && (
          <div className="vs-small">Request {error.requestId}</div>
        )}
      </EmptyStateBody>
      {retry !== undefined && (
        <EmptyStateFooter>
          <EmptyStateActions>
            <Button variant="secondary" onClick={() => void retry()}>
              Try again
            </Button>
          </EmptyStateActions>
        </EmptyStateFooter>
      )}
    </EmptyState>
  );
}

/** What the user may not read, and by which policies. */
export function NotAllowed({
  rules,
  children,
}: {
  rules: readonly string[];
  children?: ReactNode;
}) {
  return (
    <EmptyState
      variant="sm"
      headingLevel="h3"
      titleText="Not allowed"
      icon={LockIcon}
    >
      <EmptyStateBody>
        {rules.map((rule) => (
          <div key={rule}>policy {rule} does not allow it</div>
        ))}
        {children !== undefined && <div>{children}</div>}
      </EmptyStateBody>
    </EmptyState>
  );
}

export function Empty({
  title,
  children,
}: {
  title: string;
  children?: ReactNode;
}) {
  return (
    <EmptyState
      variant="sm"
      headingLevel="h3"
      titleText={title}
      icon={SearchIcon}
    >
      {children !== undefined && <EmptyStateBody>{children}</EmptyStateBody>}
    </EmptyState>
  );
}

/** A fleet that has nothing to show yet. */
export function NoHost() {
  return (
    <Empty title="No host reports yet">
      Start vsched-agent on a compute host: the host is here once its agent has
      reported. “vsched-agent doctor” there lists what is missing.
    </Empty>
  );
}

/** What came of an action that failed, beside its button. */
export function Problems({ error }: { error: Error | null }) {
  if (error === null) {
    return null;
  }
  if (isConflict(error)) {
    return (
      <div className="vs-problems" role="alert">
        Another user has changed it meanwhile. Nothing was done; what is shown
        is read again.
      </div>
    );
  }
  const faults =
    error instanceof ApiError
      ? error.faults
      : [{ detail: error.message, code: '' }];
  return (
    <div className="vs-problems" role="alert">
      {faults.map((fault) => (
        <div key={fault.detail}>
          {fault.detail}
          {fault.code !== '' && <code className="vs-code">{fault.code}</code>}
        </div>
      ))}
    </div>
  );
}
