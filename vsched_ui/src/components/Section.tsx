// SPDX-License-Identifier: Apache-2.0

import {
  Breadcrumb,
  BreadcrumbItem,
  Card,
  CardBody,
  CardHeader,
  CardTitle,
  Title,
} from '@patternfly/react-core';
import { type ReactNode, useEffect, useId } from 'react';
import { Link } from 'react-router';

/** The head of a view, and its title in the browser. */
export function Head({
  title,
  above,
  state,
  actions,
  children,
}: {
  title: string;
  above?: { to: string; text: string };
  state?: ReactNode;
  actions?: ReactNode;
  children?: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} · vsched`;
  }, [title]);
  return (
    <div className="vs-head">
      {above !== undefined && (
        <Breadcrumb className="vs-breadcrumb">
          <BreadcrumbItem
            render={({ className }) => (
              <Link className={className} to={above.to}>
                {above.text}
              </Link>
            )}
          />
          <BreadcrumbItem isActive>{title}</BreadcrumbItem>
        </Breadcrumb>
      )}
      <div className="vs-head__row">
        <Title headingLevel="h1" size="2xl" className="vs-head__title">
          {title}
        </Title>
        {state}
        <span className="vs-head__actions">{actions}</span>
      </div>
      {children !== undefined && <div className="vs-head__text">{children}</div>}
    </div>
  );
}

/** A part of a view, with a heading of its own. */
export function Section({
  title,
  note,
  actions,
  children,
}: {
  title: string;
  note?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  const id = useId();
  return (
    <Card
      component="section"
      aria-labelledby={id}
      className="vs-section"
      isCompact
    >
      <CardHeader {...(actions === undefined ? {} : { actions: { actions } })}>
        <CardTitle component="h2" id={id}>
          {title}
        </CardTitle>
      </CardHeader>
      <CardBody>
        {note !== undefined && <p className="vs-note">{note}</p>}
        {children}
      </CardBody>
    </Card>
  );
}

/** Large figures side by side. */
export function Tiles({ children }: { children: ReactNode }) {
  return <dl className="vs-tiles">{children}</dl>;
}

export function Tile({
  title,
  children,
  note,
  level,
}: {
  title: ReactNode;
  children: ReactNode;
  note?: ReactNode;
  level?: 'warning' | 'danger' | undefined;
}) {
  return (
    <div className={`vs-tile ${level === undefined ? '' : `vs-tile--${level}`}`}>
      <dt>{title}</dt>
      <dd>
        <span className="vs-tile__value">{children}</span>
        {note !== undefined && <span className="vs-tile__note">{note}</span>}
      </dd>
    </div>
  );
}

/** Names and values, in columns. */
export function Facts({
  of,
}: {
  of: readonly (readonly [ReactNode, ReactNode])[];
}) {
  return (
    <dl className="vs-facts">
      {of.map(([name, value], index) => (
        <div key={index}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
