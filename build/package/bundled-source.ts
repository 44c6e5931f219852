import { statSync } from 'node:fs';

/** A source that went into a bundle, as it was. */
export interface BundledSource {
  readonly file: string;
  readonly sizeBytes: number;
  readonly mtimeMs: number;
}

export function factsOf(sources: ReadonlySet<string>): readonly BundledSource[] {
  return [...sources].sort().map((file) => {
    const { size, mtimeMs } = statSync(file);
    return { file, sizeBytes: size, mtimeMs };
  });
}
