/**
 * `app://landlord/`: the window's page, from the files of its build. Nothing else has this origin, so a
 * message that comes from it comes from the page. A page of `file:` could read the user's files, and one
 * of `http:` shares its site with every other program that listens on loopback.
 */
import type { CustomScheme } from 'electron';
import { SAFE_HEADERS } from '../core/http/headers.ts';
import { readPageFile } from '../core/http/static-page.ts';

const SCHEME = 'app';
const HOST = 'landlord';
export const PAGE_URL = `${SCHEME}://${HOST}/`;

/** To be registered before the app is ready. */
export const PAGE_SCHEME: CustomScheme = {
  scheme: SCHEME,
  privileges: { standard: true, secure: true },
};

/** The page runs its own scripts and styles, and reaches no network at all: what it asks goes over IPC. */
export const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "font-src 'self'",
  "connect-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** Whether an address is the page's own; its files are not pages. */
export function isPageUrl(address: string): boolean {
  if (!URL.canParse(address)) return false;
  const { protocol, host, pathname, username, password } = new URL(address);
  if (protocol !== `${SCHEME}:` || host !== HOST || username !== '' || password !== '') return false;
  return pathname === '/' || pathname === '/index.html';
}

/** Answers a request for a file of the page; whatever else is asked for is not there. */
export async function answerPageRequest(
  request: Pick<Request, 'url' | 'method'>,
  pageDir: string,
): Promise<Response> {
  if (request.method !== 'GET') return refusal(405, 'Only GET is answered here.');
  const path = ownPath(request.url);
  const file = path === null ? null : await readPageFile(pageDir, path);
  if (file === null) return refusal(404, 'There is no such file in the page.');
  return new Response(new Uint8Array(file.content), {
    headers: {
      ...SAFE_HEADERS,
      'content-security-policy': PAGE_POLICY,
      'content-type': file.contentType,
      'cache-control': 'no-store',
    },
  });
}

function ownPath(address: string): string | null {
  if (!URL.canParse(address)) return null;
  const { protocol, host, pathname, username, password } = new URL(address);
  const isOwn = protocol === `${SCHEME}:` && host === HOST && username === '' && password === '';
  return isOwn ? pathname : null;
}

function refusal(status: number, text: string): Response {
  return new Response(text, {
    status,
    headers: {
      ...SAFE_HEADERS,
      'content-security-policy': "default-src 'none'",
      'content-type': 'text/plain; charset=utf-8',
    },
  });
}
