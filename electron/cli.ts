import { enableCompileCache } from 'node:module';
import { compileCacheDir } from './cli/compile-cache.ts';

// Before anything else is loaded, so that the next start finds it compiled.
enableCompileCache(compileCacheDir());

const { runFromProcess } = await import('./cli/main.ts');
await runFromProcess(process.argv.slice(2));
