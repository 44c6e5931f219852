/** Electron's entry: the shell around a runtime in this process. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { app, BrowserWindow, dialog, Menu, session } from 'electron';
import { messageOf } from '../shared/errors.ts';
import { startShell } from './shell/app.ts';
import { choiceFrom, connectRuntime, realParts } from './shell/runtime-source.ts';

// The runtime starts its children (the sampler, the config reader) with `process.execPath`, and in
// here that is Electron, which would take them for apps. They are for Node.
const node = fileURLToPath(new URL('../node_modules/node/bin/node', import.meta.url));
if (existsSync(node)) process.execPath = node;

// Not awaited: Electron becomes ready only once this module has run to its end.
startShell({
  electron: {
    app,
    createWindow: (options) => new BrowserWindow(options),
    session,
    dialog,
    menu: Menu,
  },
  connect: async () => {
    const choice = choiceFrom(process.argv.slice(2));
    return choice.ok ? connectRuntime(realParts, choice.value) : choice;
  },
}).catch((error: unknown) => {
  dialog.showErrorBox('VRAM Landlord', `It could not start: ${messageOf(error)}`);
  app.exit(1);
});
