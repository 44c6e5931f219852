import { ok, type Result } from '../../../../shared/errors.ts';
import { type Companions, estimate, type Footprint } from './estimate.ts';
import type { LoadFlags } from './flags.ts';
import type { GgufHeader } from './gguf-header.ts';
import { type LoadRequest, requestFlags } from './load-request.ts';
import { readHeader } from './read-header.ts';

/** Reads the headers of all files of a load and estimates it. Errors: `bad_input`, about one of the files. */
export async function footprintOfLoad(request: LoadRequest): Promise<Result<Footprint>> {
  const flags = requestFlags(request);
  const header = await readHeader(flags.modelPath ?? '');
  if (!header.ok) return header;
  const companions = await readCompanions(flags);
  if (!companions.ok) return companions;
  return ok(estimate(header.value, flags, request.kind, companions.value));
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
    const draft = await readHeader(flags.draftPath);
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
