/**
 * Runs in the window's sandbox before the page, and hands it the calls of the schema and nothing else:
 * no ipcRenderer, no channel of the page's choosing, no event object.
 */
import { contextBridge, ipcRenderer } from 'electron';
import { BRIDGE_NAME, makeBridge } from '../shared/ipc-bridge.ts';

contextBridge.exposeInMainWorld(
  BRIDGE_NAME,
  makeBridge({
    invoke: (channel, args) => ipcRenderer.invoke(channel, args),
    listen(channel, listener) {
      const receive = (_event: unknown, text: unknown): void => listener(text);
      ipcRenderer.on(channel, receive);
      return () => {
        ipcRenderer.off(channel, receive);
      };
    },
  }),
);
