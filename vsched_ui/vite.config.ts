// SPDX-License-Identifier: Apache-2.0

import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

import { sourcesDigest } from './scripts/digest.mjs';

export default defineConfig({
  // Addresses in the index are relative to its <base>, which the API sets.
  base: './',
  plugins: [react(), sourcesDigest()],
  build: {
    outDir: 'static',
    emptyOutDir: true,
    // No data: URLs for what can be a file: the page's policy is strict.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2022',
    license: { fileName: 'licenses.md' },
    chunkSizeWarningLimit: 900,
    rolldownOptions: {
      output: {
        entryFileNames: 'assets/[name]-[hash].js',
        chunkFileNames: 'assets/[name]-[hash].js',
        assetFileNames: 'assets/[name]-[hash][extname]',
      },
    },
  },
  server: {
    // "npx vite" beside a running API.
    proxy: {
      '/v1': 'http://127.0.0.1:8790',
      '/ui/session': 'http://127.0.0.1:8790',
    },
  },
  test: { environment: 'node', include: ['src/**/*.test.ts'] },
});
