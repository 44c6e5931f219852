import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The page: built into out/renderer, from where the runtime serves it at `/`. */
export default defineConfig({
  root: `${root}renderer`,
  base: './',
  cacheDir: `${root}node_modules/.cache/vite`,
  plugins: [react()],
  build: {
    outDir: `${root}out/renderer`,
    emptyOutDir: true,
    target: ['chrome120', 'firefox128', 'safari17'],
    // The page's content policy allows no data: scripts or styles.
    assetsInlineLimit: 0,
    sourcemap: false,
  },
  // `npm run dev`: the page from its sources over a runtime that is already serving.
  server: {
    host: '127.0.0.1',
    port: 5173,
    proxy: { '/api': { target: `http://127.0.0.1:${process.env.LANDLORD_PORT ?? '7781'}` } },
  },
});
