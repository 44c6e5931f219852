import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

// Before anything else is loaded, so that the next start finds it compiled. Not in /tmp, where
// somebody else could have put it.
enableCompileCache(join(import.meta.dirname, '..', 'node_modules', '.cache', 'compile'));

const { runFromProcess } = await import('./cli/main.ts');
await runFromProcess(process.argv.slice(2));
