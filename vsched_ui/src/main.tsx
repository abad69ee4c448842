// SPDX-License-Identifier: Apache-2.0

import '@patternfly/react-core/dist/styles/base.css';

import './app/page.css';

import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';

import { App } from './app/App';
import { startTheme } from './app/theme';

startTheme();
const root = document.getElementById('root');
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
