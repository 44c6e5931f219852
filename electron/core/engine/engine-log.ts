import { boundedLog } from '../backends/own/bounded-log.ts';
import { logFileOf } from '../backends/own/log-file.ts';
import { nodeEngineProcess, type StartEngineProcess } from './engine-process.ts';

/** A Node child whose words are kept where `landlord logs embedded` finds them, in two files of 4 MiB at most. */
export function engineWithLog(logFolder: string): StartEngineProcess {
  const log = boundedLog(logFileOf(logFolder, 'embedded'));
  return nodeEngineProcess({ log: (text) => log.write(text) });
}
