export interface LlamaServerBinary {
  readonly command: string;
  /** To be laid over the environment of the process that starts it. */
  readonly env: Readonly<Record<string, string>>;
  /** `0.7.0 (build 11669, commit …)`, as the binary says it. */
  readonly version: string;
  readonly origin: 'fetched' | 'installed';
}

export declare const defaultCacheDir: string;

/** One that can be started now, or null. Synchronous, no network. */
export declare function findLlamaServer(options?: {
  readonly cacheDir?: string;
  readonly path?: string;
}): LlamaServerBinary | null;

/** Found, or fetched (about 10 s, 15 MB) when `allowDownload` (default). Throws an Error that says what to do. */
export declare function ensureLlamaServer(options?: {
  readonly allowDownload?: boolean;
  readonly cacheDir?: string;
  readonly onProgress?: (line: string) => void;
}): Promise<LlamaServerBinary>;

export declare function archivesOf(
  files: readonly { readonly name: string; readonly text: string }[],
): readonly { readonly uri: string; readonly suites: string; readonly signedBy: string | null }[];

export declare function cpuBackend(names: readonly string[], flags: ReadonlySet<string>): string | null;
