/**
 * What the window's page may do: nothing but be the page. It opens no other window, goes to no other
 * address, embeds nothing and is granted no permission, whatever ends up running in it.
 */
import type { WebContents } from 'electron';
import type { PermissionSession } from './electron-parts.ts';
import { isPageUrl } from './protocol.ts';

export type FencedContents = Pick<WebContents, 'setWindowOpenHandler' | 'on'>;

/** Where a link may lead, in the user's own browser: an origin, and what its paths begin with. */
const OUTSIDE: readonly { readonly origin: string; readonly path: string }[] = [
  { origin: 'https://github.com', path: '/ggml-org/llama.cpp/' },
  { origin: 'https://docs.ollama.com', path: '/' },
  { origin: 'https://www.kernel.org', path: '/doc/' },
];
const LONGEST_LINK = 2048;

/** Whether the user's browser may be sent there. */
export function mayOpenOutside(address: string): boolean {
  if (address.length > LONGEST_LINK || !URL.canParse(address)) return false;
  const { origin, pathname, username, password } = new URL(address);
  if (username !== '' || password !== '') return false;
  return OUTSIDE.some((place) => origin === place.origin && pathname.startsWith(place.path));
}

export function fenceContents(contents: FencedContents, openOutside: (address: string) => void): void {
  contents.setWindowOpenHandler(({ url }) => {
    if (mayOpenOutside(url)) openOutside(new URL(url).href);
    return { action: 'deny' };
  });
  contents.on('will-attach-webview', (event) => event.preventDefault());
  contents.on('will-navigate', (event) => {
    if (!isPageUrl(event.url)) event.preventDefault();
  });
  contents.on('will-frame-navigate', (event) => {
    if (!event.isMainFrame || !isPageUrl(event.url)) event.preventDefault();
  });
  contents.on('will-redirect', (event) => {
    if (!isPageUrl(event.url)) event.preventDefault();
  });
}

export function fenceSession(session: PermissionSession): void {
  session.setPermissionRequestHandler((_contents, _permission, answer) => answer(false));
  session.setPermissionCheckHandler(() => false);
  session.setDevicePermissionHandler(() => false);
}
