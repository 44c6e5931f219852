import { readFile, realpath, stat } from 'node:fs/promises';
import { extname, join, sep } from 'node:path';

/** A file of the built page, ready to send. */
export interface PageFile {
  readonly content: Buffer;
  readonly contentType: string;
  readonly cacheControl: string;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
};

/** No page file is near this; what is larger was not put there by the build. */
const MAX_FILE_BYTES = 16 * 1024 * 1024;

/**
 * Where a URL path points inside the page, as a relative path; null when it points nowhere good.
 * Names are plain: no dot files, no `..`, no backslash, no NUL, however they are encoded.
 */
export function pagePath(urlPath: string): string | null {
  let path: string;
  try {
    path = decodeURIComponent(urlPath);
  } catch {
    return null;
  }
  if (path === '/') return 'index.html';
  const parts = path.slice(1).split('/');
  return path.startsWith('/') && parts.every((part) => /^[\w-][\w.@-]*$/.test(part)) ? parts.join('/') : null;
}

/** The file at a URL path under `pageDir`; null when there is none, or a link leads out of the folder. */
export async function readPageFile(pageDir: string, urlPath: string): Promise<PageFile | null> {
  const relative = pagePath(urlPath);
  const contentType = relative === null ? undefined : TYPES[extname(relative)];
  if (relative === null || contentType === undefined) return null;
  try {
    const root = await realpath(pageDir);
    const file = await realpath(join(root, relative));
    if (!file.startsWith(root + sep)) return null;
    const facts = await stat(file);
    if (!facts.isFile() || facts.size > MAX_FILE_BYTES) return null;
    // The build puts a content hash into the names under assets/, so these never change.
    const immutable = relative.startsWith('assets/');
    return {
      content: await readFile(file),
      contentType,
      cacheControl: immutable ? 'private, max-age=31536000, immutable' : 'no-store',
    };
  } catch {
    return null;
  }
}
