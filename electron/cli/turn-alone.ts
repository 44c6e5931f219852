/** The entry of `out/turn` (build/package/turn-bundle.ts): a command line that begins with `turn`. */
import { runFromProcess } from './main.ts';

void runFromProcess(process.argv.slice(2));
