/** Carries out what a person chose in the tray's menu, asking first where it can't be taken back. */
import type { AppSettings } from '../../shared/app-settings.ts';
import { assertNever, fail, type LandlordError, messageOf, ok, type Result } from '../../shared/errors.ts';
import {
  type Ask,
  type Place,
  sleepSpanMs,
  type TrayAction,
  type TrayCommand,
} from '../../shared/tray-entry.ts';
import type { Command, CommandDone } from '../core/runtime-api.ts';
import type { DeskElectron } from './desk-parts.ts';

export interface ActionOptions {
  readonly electron: Pick<DeskElectron, 'clipboard' | 'dialog' | 'openExternal'>;
  command(command: Command): Promise<Result<CommandDone>>;
  host(): Promise<Result<CommandDone>>;
  /** An address that lets a browser in once. */
  openUrl(): Promise<Result<string>>;
  set(change: Partial<AppSettings>): Promise<Result<null>>;
  startAtLogin(on: boolean): Promise<Result<null>>;
  openWindow(place: Place): void;
  /** Says how something ended that took a while. */
  say(message: string): void;
  quit(): void;
  readonly epochMs: () => number;
}

const TITLE = 'VRAM Landlord';
/** Their outcome is worth a word: they take a while, and nothing else shows it at once. */
const SLOW: ReadonlySet<Command['type']> = new Set(['load', 'makeRoom', 'drain', 'restore', 'accept']);

export async function carryOut(action: TrayAction, options: ActionOptions): Promise<void> {
  switch (action.type) {
    case 'open':
      options.openWindow(action.place);
      return;
    case 'copy':
      await options.electron.clipboard.writeText(action.text);
      return;
    case 'command':
      if (action.ask === null || (await confirmed(action.ask, options))) await run(action.command, options);
      return;
    case 'sleep':
      await run({ type: 'sleep', forMs: sleepSpanMs(action.until, options.epochMs()) }, options);
      return;
    case 'set':
      await tellFailure(await options.set(action.change), options);
      return;
    case 'startAtLogin':
      await tellFailure(await options.startAtLogin(action.on), options);
      return;
    case 'browse':
      await tellFailure(await browse(options), options);
      return;
    case 'host':
      await tellFailure(await options.host(), options);
      return;
    case 'quit':
      options.quit();
      return;
    default:
      assertNever(action, 'action');
  }
}

async function run(
  command: TrayCommand | Extract<Command, { type: 'sleep' }>,
  options: ActionOptions,
): Promise<void> {
  const done = await options.command(command);
  if (done.ok) {
    if (SLOW.has(command.type)) options.say(done.value.message);
    return;
  }
  // A load that was refused for want of memory may be wanted all the same: the figures are on the table.
  const forced: TrayCommand | null =
    command.type === 'load' && !command.force && done.error.code === 'vram_denied'
      ? { ...command, force: true }
      : null;
  if (forced === null) {
    await tellFailure(done, options);
    return;
  }
  const ask = { question: 'It was not loaded', detail: done.error.message, confirm: 'Load anyway' };
  if (await confirmed(ask, options)) await run(forced, options);
}

async function browse({ electron, openUrl }: ActionOptions): Promise<Result<null>> {
  const url = await openUrl();
  if (!url.ok) return url;
  try {
    await electron.openExternal(url.value);
    return ok(null);
  } catch (error) {
    return fail(
      'not_supported',
      `No browser could be opened: ${messageOf(error)}. \`landlord open\` shows the address.`,
    );
  }
}

async function confirmed(ask: Ask, { electron }: ActionOptions): Promise<boolean> {
  const { response } = await electron.dialog.showMessageBox({
    type: 'question',
    title: TITLE,
    message: ask.question,
    detail: ask.detail,
    buttons: [ask.confirm, 'Cancel'],
    defaultId: 1,
    cancelId: 1,
    noLink: true,
  });
  return response === 0;
}

async function tellFailure(
  done: { readonly ok: true } | { readonly ok: false; readonly error: LandlordError },
  { electron }: ActionOptions,
): Promise<void> {
  if (done.ok) return;
  await electron.dialog.showMessageBox({
    type: 'warning',
    title: TITLE,
    message: 'That did not work',
    detail: done.error.message,
    buttons: ['Close'],
  });
}
