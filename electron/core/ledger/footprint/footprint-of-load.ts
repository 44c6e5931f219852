import { basename } from 'node:path';
import { fail, ok, type Result } from '../../../../shared/errors.ts';
import { factsOf } from './architecture.ts';
import { type Companions, estimate, type Footprint } from './estimate.ts';
import type { LoadFlags } from './flags.ts';
import type { GgufHeader } from './gguf-header.ts';
import { type LoadRequest, requestFlags } from './load-request.ts';
import { implausible } from './plausible.ts';
import { readHeader } from './read-header.ts';

/** Reads the headers of all files of a load and estimates it. Errors: `bad_input`, about one of the files. */
export async function footprintOfLoad(request: LoadRequest): Promise<Result<Footprint>> {
  const flags = requestFlags(request);
  const header = await readModel(flags.modelPath ?? '');
  if (!header.ok) return header;
  const companions = await readCompanions(flags);
  if (!companions.ok) return companions;
  return sensible(estimate(header.value, flags, request.kind, companions.value), flags.modelPath ?? '');
}

/** A header with layers in it: a projector or an adapter is no model. Errors: `bad_input`. */
export async function readModel(path: string): Promise<Result<GgufHeader>> {
  const header = await readHeader(path);
  if (!header.ok) return header;
  const wrong = implausible(header.value);
  if (wrong !== null) return fail('bad_input', `${basename(path)} ${wrong}`);
  if (factsOf(header.value).layers.length > 0) return header;
  return fail('bad_input', `${basename(path)} has no layers, so it is no model that a server loads.`);
}

/**
 * A model that somebody plans to load: none of GGUF's version 2, which its tools gave up in autumn 2023. What a
 * server loads all the same, as llama-server 11669 does, is booked by `readModel`. Errors: `bad_input`.
 */
export async function readPlannedModel(path: string): Promise<Result<GgufHeader>> {
  const header = await readModel(path);
  if (!header.ok || header.value.version >= 3) return header;
  const name = basename(path);
  return fail(
    'bad_input',
    `${name} is of GGUF version ${header.value.version}, of 2023: write it anew as version 3 (llama-quantize ${name} NEW.gguf COPY).`,
  );
}

/** Errors: `bad_input` where the sizes of the header, or of the load, come to more than can be counted. */
export function sensible(footprint: Footprint, path: string): Result<Footprint> {
  if (Number.isSafeInteger(footprint.totalBytes)) return ok(footprint);
  return fail('bad_input', `${basename(path)} would take more memory than can be, so a size in it is wrong.`);
}

/** The headers of what is loaded beside the model. Errors as of `readHeader`. */
export async function readCompanions(flags: LoadFlags): Promise<Result<Companions>> {
  const read: { projector?: GgufHeader; draft?: GgufHeader; adapters?: GgufHeader[] } = {};
  if (flags.projectorPath !== null) {
    const projector = await readHeader(flags.projectorPath);
    if (!projector.ok) return projector;
    read.projector = projector.value;
  }
  if (flags.draftPath !== null) {
    const draft = await readModel(flags.draftPath);
    if (!draft.ok) return draft;
    read.draft = draft.value;
  }
  for (const path of flags.adapterPaths) {
    const adapter = await readHeader(path);
    if (!adapter.ok) return adapter;
    read.adapters = [...(read.adapters ?? []), adapter.value];
  }
  return ok(read);
}
