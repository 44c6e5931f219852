const GIB = 1024 ** 3;

/**
 * Stands on a command line of ours for a context that Ollama chooses: followed by the most that it may be,
 * what the model was trained for, or 0 where that is not told.
 */
export const CHOSEN_UP_TO = '--ctx-size-chosen-up-to';

/** From this version on the choice goes by the memory of its cards; before, it was 4096 tokens. */
const BY_MEMORY_SINCE = [0, 15, 5] as const;
const BEFORE_TOKENS = 4096;

/**
 * What Ollama gives who asks for no context, by the memory of all its cards together (server/routes.go, `Serve`):
 * 32 Ki tokens on a card of 24 GB, 256 Ki from 48 GB on. null for the memory: not known.
 */
export function chosenContext(totalBytes: number | null): number {
  if (totalBytes === null || totalBytes < 23 * GIB) return 4096;
  return totalBytes < 47 * GIB ? 32_768 : 262_144;
}

/** Flags for the context of a model that says none, as a server of this version chooses it. */
export function chosenArgs(version: string | null, trainedTokens: number | null): readonly string[] {
  if (isBefore(version)) return ['--ctx-size', String(withinTrained(BEFORE_TOKENS, trainedTokens))];
  return [CHOSEN_UP_TO, String(trainedTokens ?? 0)];
}

/** Ollama gives no model more than it was trained for (llm/server.go). */
export function withinTrained(tokens: number, trainedTokens: number | null): number {
  return trainedTokens === null || trainedTokens <= 0 ? tokens : Math.min(tokens, trainedTokens);
}

/** The command line with the choice made, for a device of so many bytes. */
export function placedArgs(args: readonly string[] | null, totalBytes: number | null) {
  const at = args?.indexOf(CHOSEN_UP_TO) ?? -1;
  if (args === null || at < 0) return args;
  const tokens = withinTrained(chosenContext(totalBytes), Number(args[at + 1]));
  return [...args.slice(0, at), '--ctx-size', String(tokens), ...args.slice(at + 2)];
}

/** A build of one's own calls itself 0.0.0, and is new. */
function isBefore(version: string | null): boolean {
  const parts = /^(\d+)\.(\d+)\.(\d+)/
    .exec(version ?? '')
    ?.slice(1, 4)
    .map(Number);
  if (parts === undefined || parts.every((part) => part === 0)) return false;
  const index = BY_MEMORY_SINCE.findIndex((part, at) => part !== parts[at]);
  return index >= 0 && (parts[index] ?? 0) < (BY_MEMORY_SINCE[index] ?? 0);
}
