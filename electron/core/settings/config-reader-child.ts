import { text } from 'node:stream/consumers';
import type { ReaderAnswer, ReaderRequest } from './config-reader.ts';
import { jsonSchemaText } from './json-schema.ts';
import { parseSettings } from './parse-settings.ts';

/** One request on stdin, one answer on stdout, both JSON. See `readInChild`. */
const request: ReaderRequest = JSON.parse(await text(process.stdin));
const answer: ReaderAnswer =
  request.type === 'schema'
    ? { type: 'schema', text: jsonSchemaText() }
    : { type: 'parse', result: parseSettings(request.text, request.fileName, request.home) };
process.stdout.write(JSON.stringify(answer));
