// SPDX-License-Identifier: Apache-2.0

import {
  Button,
  Masthead,
  MastheadBrand,
  MastheadContent,
  MastheadMain,
  MastheadToggle,
  Nav,
  NavItem,
  NavList,
  Page,
  PageSection,
  PageSidebar,
  PageSidebarBody,
  PageToggleButton,
  SkipToContent,
  ToggleGroup,
  ToggleGroupItem,
} from '@patternfly/react-core';
import { BarsIcon } from '@patternfly/react-icons/dist/esm/icons/bars-icon';
import { DesktopIcon } from '@patternfly/react-icons/dist/esm/icons/desktop-icon';
import { MoonIcon } from '@patternfly/react-icons/dist/esm/icons/moon-icon';
import { SunIcon } from '@patternfly/react-icons/dist/esm/icons/sun-icon';
import { type ReactNode, useEffect, useMemo } from 'react';
import { Link, useLocation } from 'react-router';

import { useFeed } from '../api/hooks';
import { VIEWS, menuOf, viewAt } from '../model/views';
import { useApi } from './api';
import { Away } from './Away';
import icon from './icon.svg';
import { type Choice, useTheme } from './theme';

const THEMES: readonly (readonly [Choice, string, ReactNode])[] = [
  ['light', 'Light', <SunIcon key="light" />],
  ['system', 'As the system', <DesktopIcon key="system" />],
  ['dark', 'Dark', <MoonIcon key="dark" />],
];

const MAIN = 'main';

/** What is around every view. */
export function Shell({ children }: { children: ReactNode }) {
  const { pathname } = useLocation();
  const { client, rights } = useApi();
  const menu = useMemo(() => menuOf(rights), [rights]);
  const shown = viewAt(pathname);
  const active = shown === null ? null : VIEWS[shown].within;
  useFeed();
  useEffect(() => {
    document.getElementById(MAIN)?.scrollTo(0, 0);
  }, [pathname]);
  return (
    <Page
      isManagedSidebar
      mainContainerId={MAIN}
      mainAriaLabel="Content"
      skipToContent={
        <SkipToContent
          href={`#${MAIN}`}
          onClick={(event) => {
            // The <base> of the document would send it elsewhere.
            event.preventDefault();
            const main = document.getElementById(MAIN);
            main?.setAttribute('tabindex', '-1');
            main?.focus();
          }}
        >
          Skip to content
        </SkipToContent>
      }
      masthead={<Top />}
      sidebar={
        <PageSidebar>
          <PageSidebarBody>
            <Nav aria-label="Views">
              <NavList>
                {menu.map(({ view, path, title }) => (
                  <NavItem key={view} itemId={view} isActive={active === view}>
                    <Link
                      to={path}
                      aria-current={active === view ? 'page' : undefined}
                    >
                      {title}
                    </Link>
                  </NavItem>
                ))}
              </NavList>
            </Nav>
          </PageSidebarBody>
        </PageSidebar>
      }
    >
      <Away client={client} />
      <PageSection className="vs-main" hasBodyWrapper={false}>
        {children}
      </PageSection>
    </Page>
  );
}

function Top() {
  const { session, signOut } = useApi();
  const [choice, setChoice] = useTheme();
  return (
    <Masthead>
      <MastheadMain>
        <MastheadToggle>
          <PageToggleButton aria-label="Views">
            <BarsIcon />
          </PageToggleButton>
        </MastheadToggle>
        <MastheadBrand>
          <Link to="/" className="vs-brand">
            <img src={icon} alt="" width={26} height={26} />
            <span>vsched</span>
          </Link>
        </MastheadBrand>
      </MastheadMain>
      <MastheadContent>
        <div className="vs-top">
          <span className="vs-top__who">
            {session.auth_strategy === 'noauth'
              ? 'without authentication'
              : `${session.user_id ?? ''} ${session.roles.length > 0 ? `(${session.roles.join(', ')})` : ''}`}
          </span>
          <ToggleGroup aria-label="Colours" isCompact>
            {THEMES.map(([key, title, picture]) => (
              <ToggleGroupItem
                key={key}
                icon={picture}
                aria-label={title}
                title={title}
                buttonId={`theme-${key}`}
                isSelected={choice === key}
                onChange={() => setChoice(key)}
              />
            ))}
          </ToggleGroup>
          {signOut !== null && (
            <Button variant="link" className="vs-read" onClick={signOut}>
              Sign out
            </Button>
          )}
        </div>
      </MastheadContent>
    </Masthead>
  );
}
