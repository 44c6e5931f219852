import { text } from 'node:stream/consumers';
import type { Result } from '../../../../shared/errors.ts';
import type { Footprint } from './estimate.ts';
import { footprintOfLoad } from './footprint-of-load.ts';
import type { LoadRequest } from './load-request.ts';

/** Some requests on stdin, as many answers on stdout, both JSON. See `footprintsInChild`. */
const requests: readonly LoadRequest[] = JSON.parse((await text(process.stdin)) || '[]');
const answers: Result<Footprint>[] = [];
for (const request of requests) answers.push(await footprintOfLoad(request));
process.stdout.write(JSON.stringify(answers));
