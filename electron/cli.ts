import { enableCompileCache } from 'node:module';
import { ownCompileCache } from './cli/compile-cache.ts';

// Before anything else is loaded, so that the next start finds it compiled.
const cache = ownCompileCache();
if (cache !== null) enableCompileCache(cache);

const { runFromProcess } = await import('./cli/main.ts');
await runFromProcess(process.argv.slice(2));
