/**
 * What the window's page may do: nothing but be the runtime's page. It opens no other window, goes to
 * no other origin, embeds nothing and is granted no permission, whatever ends up running in it.
 */
import type { WebContents } from 'electron';
import type { PermissionSession } from './electron-parts.ts';

export type FencedContents = Pick<WebContents, 'setWindowOpenHandler' | 'on'>;

/** Whether the page may go there: the runtime's own origin, which a key in the address leads back to. */
export function mayNavigate(url: string, pageUrl: string | null): boolean {
  if (pageUrl === null || !URL.canParse(url)) return false;
  const target = new URL(url);
  return target.protocol === 'http:' && target.origin === new URL(pageUrl).origin;
}

/** `pageUrl` is asked each time: a restarted runtime may listen on another port. */
export function fenceContents(contents: FencedContents, pageUrl: () => string | null): void {
  contents.setWindowOpenHandler(() => ({ action: 'deny' }));
  contents.on('will-attach-webview', (event) => event.preventDefault());
  contents.on('will-navigate', (event) => {
    if (!mayNavigate(event.url, pageUrl())) event.preventDefault();
  });
  contents.on('will-frame-navigate', (event) => {
    if (!event.isMainFrame || !mayNavigate(event.url, pageUrl())) event.preventDefault();
  });
  contents.on('will-redirect', (event) => {
    if (!mayNavigate(event.url, pageUrl())) event.preventDefault();
  });
}

export function fenceSession(session: PermissionSession): void {
  session.setPermissionRequestHandler((_contents, _permission, answer) => answer(false));
  session.setPermissionCheckHandler(() => false);
  session.setDevicePermissionHandler(() => false);
}
