import type { ParseArgsOptionsConfig } from 'node:util';
import { type CommandInfo, type Run, WHERE, WHERE_HELP } from './command-info.ts';

const MODEL_HELP = 'MODEL is backend/model, or the model’s name alone where only one backend has it.';

const loadAction = async (): Promise<Run> => (await import('./run-action.ts')).runAction;

function action(
  name: string,
  rest: string,
  summary: string,
  extra: { help?: readonly string[]; options?: ParseArgsOptionsConfig; argumentCount?: number } = {},
): CommandInfo {
  return {
    name,
    usage: rest === '' ? name : `${name} ${rest}`,
    summary,
    help: [...(extra.help ?? []), WHERE_HELP],
    options: { ...WHERE, ...extra.options },
    argumentCount: extra.argumentCount ?? 0,
    load: loadAction,
  };
}

const ofModel = (
  name: string,
  rest: string,
  summary: string,
  options?: ParseArgsOptionsConfig,
): CommandInfo =>
  action(name, rest, summary, { help: [MODEL_HELP], options: options ?? {}, argumentCount: 1 });

/** What the tray does too, asked of the runtime. */
export const ACTIONS: readonly CommandInfo[] = [
  ofModel('load', 'MODEL [--force]', 'load a model, making room for it by the rules', {
    force: { type: 'boolean' },
  }),
  ofModel(
    'unload',
    'MODEL [--force]',
    'unload a model, or put an agent of the engine away; a busy one only with --force',
    {
      force: { type: 'boolean' },
    },
  ),
  ofModel('pin', 'MODEL', 'never evict this model'),
  ofModel('unpin', 'MODEL', 'let the guards evict it again'),
  action('sleep', '[--for 2h]', 'no big models for a while', {
    help: ['--for T   until then, such as 90min or 2h; without it, until `landlord wake`'],
    options: { for: { type: 'string' } },
  }),
  action('wake', '', 'let big models load again'),
  action('drain', '[--kill] [--restart-unit]', 'unload everything, pinned models too', {
    help: [
      '--kill           end the proven process of what does not leave, and serves nobody',
      '--restart-unit   then start anew the systemd service of a server that does not answer',
    ],
    options: { kill: { type: 'boolean' }, 'restart-unit': { type: 'boolean' } },
  }),
  action('accept', 'OFFER', 'do what `landlord status` offers under this name', { argumentCount: 1 }),
  action('make-room', 'SIZE [--device D]', 'free this much memory for something else', {
    help: ['SIZE is an amount such as 8GB or 512MiB.', '--device D   on this device, by its id in `status`'],
    options: { device: { type: 'string' } },
    argumentCount: 1,
  }),
  action('restore', '', 'load again what was evicted or made room'),
  action('guards', 'on|observe|pause [--for 15min] [--backend B]', 'whether the guards act', {
    help: [
      'on        they act',
      'observe   they only say what they would do',
      'pause     they do neither; --for T ends it by itself',
      '--backend B   for this backend alone',
    ],
    options: { for: { type: 'string' }, backend: { type: 'string' } },
    argumentCount: 1,
  }),
];
