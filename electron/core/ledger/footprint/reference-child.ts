import { writeSync } from 'node:fs';
import { setPriority } from 'node:os';
import { createInterface } from 'node:readline';
import { fail, type Result } from '../../../../shared/errors.ts';
import { factsOf } from './architecture.ts';
import { estimate, type Footprint } from './estimate.ts';
import { readCompanions, readModel } from './footprint-of-load.ts';
import { type LoadRequest, requestFlags } from './load-request.ts';
import { referenceQuestion, withReference } from './reference.ts';
import { type ReferenceEngine, referenceEngine } from './reference-engine.ts';

/**
 * One request a line on stdin, one answer a line on fd 3, both JSON: whatever the native library prints
 * goes elsewhere. Ends with its stdin. See `referencesInChild`.
 */
const ANSWERS_FD = 3;
let engine: Result<ReferenceEngine> | null = null;

async function footprintOf(request: LoadRequest): Promise<Result<Footprint>> {
  const flags = requestFlags(request);
  const path = flags.modelPath ?? '';
  const header = await readModel(path);
  if (!header.ok) return header;
  const companions = await readCompanions(flags);
  if (!companions.ok) return companions;
  const question = referenceQuestion(factsOf(header.value), flags);
  if (question === null)
    return fail('not_supported', 'llama.cpp can not be asked for such a load without making it.');
  engine ??= await referenceEngine();
  if (!engine.ok) return engine;
  const answer = await engine.value.ask(path, question);
  if (!answer.ok) return answer;
  const footprint = estimate(header.value, flags, request.kind, companions.value);
  const checked = withReference(header.value, flags, footprint, answer.value);
  return checked === null
    ? fail('not_supported', 'llama.cpp’s figure is for another load.')
    : { ok: true, value: checked };
}

try {
  setPriority(10);
} catch {
  // Then it runs like the others.
}
process.stdin.once('end', () => process.exit(0));
for await (const line of createInterface({ input: process.stdin })) {
  const request: LoadRequest = JSON.parse(line);
  writeSync(ANSWERS_FD, `${JSON.stringify(await footprintOf(request))}\n`);
}
process.exit(0);
