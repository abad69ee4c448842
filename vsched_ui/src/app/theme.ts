// SPDX-License-Identifier: Apache-2.0

import { useEffect, useState, useSyncExternalStore } from 'react';

export type Choice = 'system' | 'light' | 'dark';

const KEY = 'vsched.theme';
const CLASS = 'pf-v6-theme-dark';
const query = window.matchMedia('(prefers-color-scheme: dark)');

function stored(): Choice {
  const found = window.localStorage.getItem(KEY);
  return found === 'light' || found === 'dark' ? found : 'system';
}

let dark = false;
const listeners = new Set<() => void>();

function apply(choice: Choice): void {
  dark = choice === 'dark' || (choice === 'system' && query.matches);
  document.documentElement.classList.toggle(CLASS, dark);
  for (const listener of listeners) {
    listener();
  }
}

/** Set the colours before anything is drawn. */
export function startTheme(): void {
  apply(stored());
}

/** Whether the page is dark now. */
export function useDark(): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => dark,
  );
}

/** What the user has chosen, and how to choose. */
export function useTheme(): [Choice, (choice: Choice) => void] {
  const [choice, setChoice] = useState(stored);
  useEffect(() => {
    apply(choice);
    if (choice === 'system') {
      window.localStorage.removeItem(KEY);
    } else {
      window.localStorage.setItem(KEY, choice);
    }
    const follow = () => apply(choice);
    query.addEventListener('change', follow);
    return () => query.removeEventListener('change', follow);
  }, [choice]);
  return [choice, setChoice];
}
