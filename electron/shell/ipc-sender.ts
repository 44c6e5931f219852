import type { WebContents, WebFrameMain } from 'electron';
import { isPageUrl } from './protocol.ts';

/** As much of Electron's event as says who sent it. */
export interface SenderEvent {
  readonly sender: Pick<WebContents, 'id'>;
  /** null once the frame has gone elsewhere or was destroyed. */
  readonly senderFrame: Pick<WebFrameMain, 'parent' | 'url'> | null;
}

/** Why a message is not answered; null: it comes from our window's page, in its top frame. */
export function whyRefused(event: SenderEvent, ownContentsId: number | null): string | null {
  if (ownContentsId === null || event.sender.id !== ownContentsId) return 'it does not come from the window';
  try {
    const frame = event.senderFrame;
    if (frame === null) return GONE;
    if (frame.parent !== null) return 'it comes from an embedded frame';
    return isPageUrl(frame.url) ? null : 'it does not come from the page of the app';
  } catch {
    // A frame that goes while it is looked at throws at each question (Electron's WebFrameMain).
    return GONE;
  }
}

const GONE = 'its frame is gone';
