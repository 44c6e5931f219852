import type { ParseArgsOptionsConfig } from 'node:util';
import type { Invocation } from './arguments.ts';
import type { Terminal } from './terminal.ts';

/** Runs a command; the value is its exit code. */
export type Run = (invocation: Invocation, terminal: Terminal) => Promise<number>;

export interface CommandInfo {
  readonly name: string;
  /** After `landlord `. */
  readonly usage: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** What `--help` adds to the usage. */
  readonly help: readonly string[];
  readonly options: ParseArgsOptionsConfig;
  /** How many arguments beside the options; `command`: a whole command line after `--`. */
  readonly argumentCount: number | 'optional' | 'command';
  /** Only what a command needs is loaded, so that `status` starts fast. */
  readonly load: () => Promise<Run>;
  /** It ends in order on a signal by itself. */
  readonly handlesSignals?: true;
}

const WHERE: ParseArgsOptionsConfig = { 'state-dir': { type: 'string' }, port: { type: 'string' } };
const JSON_OPTION: ParseArgsOptionsConfig = { json: { type: 'boolean' } };
const WHERE_HELP = '--state-dir D, --port N   which runtime, where there are several';
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

export const COMMANDS: readonly CommandInfo[] = [
  {
    name: 'serve',
    usage: 'serve [--config F] [--port N] [--state-dir D]',
    summary: 'run it without the desktop app, and print the page’s address',
    help: [
      '--config F      the settings, default ~/.config/vram-landlord/config.yaml',
      '--port N        listen on this port of 127.0.0.1, default 7781',
      '--state-dir D   keep token, log and socket in this folder',
      'It stays until SIGINT or SIGTERM, then stops in order; a second signal ends it at once.',
    ],
    options: { ...WHERE, config: { type: 'string' } },
    argumentCount: 0,
    load: async () => (await import('./run-serve.ts')).runServe,
    handlesSignals: true,
  },
  {
    name: 'status',
    usage: 'status [--json]',
    summary: 'what memory there is, who holds it, and why',
    help: ['--json   the state as /api/state has it', WHERE_HELP],
    options: { ...WHERE, ...JSON_OPTION },
    argumentCount: 0,
    load: async () => (await import('./run-status.ts')).runStatus,
  },
  {
    name: 'models',
    usage: 'models [--json]',
    summary: 'the models, their status and why',
    help: ['--json   the `models` of /api/state', WHERE_HELP],
    options: { ...WHERE, ...JSON_OPTION },
    argumentCount: 0,
    load: async () => (await import('./run-status.ts')).runModels,
  },
  {
    name: 'events',
    usage: 'events [--follow] [--json] [--limit N]',
    summary: 'what happened, with reasons and figures',
    help: [
      '--follow    go on with what happens from now, across restarts of the runtime',
      '--json      one event a line',
      '--limit N   at most the newest N (1 to 5000); default 200, with --follow 10',
      WHERE_HELP,
    ],
    options: { ...WHERE, ...JSON_OPTION, follow: { type: 'boolean' }, limit: { type: 'string' } },
    argumentCount: 0,
    load: async () => (await import('./run-events.ts')).runEvents,
  },
  ofModel('load', 'MODEL [--force]', 'load a model, making room for it by the rules', {
    force: { type: 'boolean' },
  }),
  ofModel('unload', 'MODEL [--force]', 'unload a model; a busy one only with --force', {
    force: { type: 'boolean' },
  }),
  ofModel('pin', 'MODEL', 'never evict this model'),
  ofModel('unpin', 'MODEL', 'let the guards evict it again'),
  action('sleep', '[--for 2h]', 'no big models for a while', {
    help: ['--for T   until then, such as 90min or 2h; without it, until `landlord wake`'],
    options: { for: { type: 'string' } },
  }),
  action('wake', '', 'let big models load again'),
  action('drain', '', 'unload everything, pinned models too'),
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
  {
    name: 'turn',
    usage:
      'turn --backend URL [--session S] [--model M] [--class interactive|batch] [--wait SEC] [--supervise] -- CMD…',
    summary: 'run a command in its backend’s lane, one turn at a time',
    help: [
      '--backend URL   whose lane; a backend on another machine has none, and CMD just runs',
      '--session S     whose turn it is, for those who find the lane busy',
      '--model M       which model it uses',
      '--class C       interactive (default) comes before batch among those who wait',
      '--wait SEC      wait this long for the lane, up to 3600; without it, not at all',
      '--supervise     stays beside CMD instead of becoming it, for a CMD that closes what it inherits',
      '                (sudo, a daemon): the lane is held until CMD ends, and CMD ends if this is killed',
      'It becomes CMD, so that lane and CMD end together. Busy: exit code 75 and `local_backend_busy`.',
    ],
    options: {
      backend: { type: 'string' },
      session: { type: 'string' },
      model: { type: 'string' },
      class: { type: 'string' },
      wait: { type: 'string' },
      supervise: { type: 'boolean' },
    },
    argumentCount: 'command',
    load: async () => (await import('./run-turn.ts')).runTurn,
    handlesSignals: true,
  },
  {
    name: 'reserve',
    usage: 'reserve --bytes SIZE [--device D] [--name S] -- CMD…',
    summary: 'book memory for a job that is no model, while a command runs',
    help: [
      '--bytes SIZE   the most it takes, such as 9GB or 512MiB',
      '--device D     on this device, by its id in `status`; default the largest',
      '--name S       what it is called in events and in the budget; default the command’s name',
      'Idle models leave for it where that makes room. Denied: exit code 75 and the figures.',
      'The memory is given back when CMD ends, or this process, however that is.',
      WHERE_HELP,
    ],
    options: {
      ...WHERE,
      bytes: { type: 'string' },
      device: { type: 'string' },
      name: { type: 'string' },
    },
    argumentCount: 'command',
    load: async () => (await import('./run-reserve.ts')).runReserve,
    handlesSignals: true,
  },
  {
    name: 'gate',
    usage: 'gate URL [--model M] [--json] | gate --machine-wide',
    summary: 'where a backend’s lane lies and who holds it, without taking it',
    help: [
      '--model M        the lane of this model, where the URL is a gateway’s',
      '--json           as JSON, with every slot',
      '--machine-wide   as root, once: one root for the lanes of all users',
      'Exit code 0: a turn would get it; 75: held; 4: it can’t be told from here.',
    ],
    options: { ...JSON_OPTION, model: { type: 'string' }, 'machine-wide': { type: 'boolean' } },
    argumentCount: 'optional',
    load: async () => (await import('./run-gate.ts')).runGate,
  },
  {
    name: 'estimate',
    usage: 'estimate FILE.gguf [--ctx N] [--parallel N] [--cache-type-k T] [--fit] [--json] …',
    summary: 'what a model will take of its device, by part, before it is loaded',
    help: [
      '--ctx N            tokens of context of all slots; default what the model was trained for',
      '--parallel N       slots, each with its part of the context; default 4 that share it',
      '--kv-unified       the slots share one context',
      '--cache-type-k T   f16 (default), q8_0, q4_0, … for keys; --cache-type-v for values',
      '--ubatch N         tokens evaluated at once, default 512',
      '--gpu-layers N     layers on the device, default all',
      '--flash-attn on|off|auto, --swa-full, --n-cpu-moe N, --mmproj FILE   as llama-server has them',
      '--device KIND      cuda, hip, vulkan, sycl, metal or cpu; default what this machine has',
      '--build N          of llama-server; from 9450 on it takes less for its outputs',
      '--fit              the largest context, or the number of layers, that fits now',
      '--quick            by arithmetic alone, without asking llama.cpp for its own figure',
      '--json             the parts in bytes',
      'Only the file’s header is read. Exit code 65: it is no usable GGUF file.',
    ],
    options: {
      ...JSON_OPTION,
      ...WHERE,
      ctx: { type: 'string' },
      parallel: { type: 'string' },
      'kv-unified': { type: 'boolean' },
      'cache-type-k': { type: 'string' },
      'cache-type-v': { type: 'string' },
      ubatch: { type: 'string' },
      'gpu-layers': { type: 'string' },
      'flash-attn': { type: 'string' },
      'swa-full': { type: 'boolean' },
      'n-cpu-moe': { type: 'string' },
      mmproj: { type: 'string' },
      device: { type: 'string' },
      build: { type: 'string' },
      fit: { type: 'boolean' },
      quick: { type: 'boolean' },
    },
    argumentCount: 1,
    load: async () => (await import('./run-estimate.ts')).runEstimate,
  },
  {
    name: 'presets',
    usage: 'presets DIR [--output FILE] [--ctx N] [--parallel N] [--room SIZE] [--dry-run] [--force]',
    summary: 'write a llama.cpp preset file for a folder of GGUF files, each so that it fits',
    help: [
      '--output FILE   where to, default DIR/models.ini',
      '--ctx N         the most context for each, default 32768; less where it does not fit',
      '--parallel N    slots of each, every one with its own context, default 1',
      '--room SIZE     what a model may take, default what floor and cap leave of the card without its models',
      '--dry-run       only show the file',
      '--force         replace a file that this command did not make',
      'It says what it chose for each and why. Exit code 65: no usable model is there.',
      WHERE_HELP,
    ],
    options: {
      ...WHERE,
      output: { type: 'string' },
      ctx: { type: 'string' },
      parallel: { type: 'string' },
      room: { type: 'string' },
      'dry-run': { type: 'boolean' },
      force: { type: 'boolean' },
    },
    argumentCount: 1,
    load: async () => (await import('./run-presets.ts')).runPresets,
  },
  {
    name: 'logs',
    usage: 'logs BACKEND [--follow] [--lines N]',
    summary: 'what a server that VRAM Landlord runs has written',
    help: [
      '--follow    go on with what it writes from now',
      '--lines N   the newest N, default 200',
      '--state-dir D   of which runtime, where there are several',
      'Only a backend with a `command` in the config has a log here.',
    ],
    options: { 'state-dir': { type: 'string' }, follow: { type: 'boolean' }, lines: { type: 'string' } },
    argumentCount: 1,
    load: async () => (await import('./run-logs.ts')).runLogs,
  },
  {
    name: 'engine',
    usage: 'engine add NAME FILE.gguf [--config F] [--state-dir D]',
    summary: 'give the embedded engine a model, so that no server is needed',
    help: [
      'It writes the model into the settings and keeps all else of them as it is; a runtime that is up has',
      'it at once. Agents ask for it at the gateway as embedded/NAME.',
      '--config F      the settings, default ~/.config/vram-landlord/config.yaml',
      '--state-dir D   of the runtime that these settings are for',
    ],
    options: { config: { type: 'string' }, 'state-dir': { type: 'string' } },
    argumentCount: 3,
    load: async () => (await import('./run-engine.ts')).runEngine,
  },
  {
    name: 'replay',
    usage: 'replay [--floor SIZE] [--max-big N|fit] [--last 2d] [--device D] [--json]',
    summary: 'run the recorded days again under another floor, and say what would have been unloaded',
    help: [
      '--floor SIZE      kept free for the desktop, such as 6GB; default as it is set',
      '--max-big N|fit   big models at a time; default as it is set',
      '--last T          how far back, default 48h, at most 30d',
      '--device D        by id or name; default the largest',
      '--json            all figures as JSON',
      WHERE_HELP,
    ],
    options: {
      ...WHERE,
      ...JSON_OPTION,
      floor: { type: 'string' },
      'max-big': { type: 'string' },
      last: { type: 'string' },
      device: { type: 'string' },
    },
    argumentCount: 0,
    load: async () => (await import('./run-replay.ts')).runReplay,
  },
  {
    name: 'orphans',
    usage: 'orphans [--end PID]',
    summary: 'model processes whose own server is gone, and their end',
    help: [
      'Only what is proven is listed: its parent, a llama.cpp router or an Ollama, is not there any more.',
      '--end PID   ends that one, once it is proven again; nothing else ends any of them',
    ],
    options: { end: { type: 'string' } },
    argumentCount: 0,
    load: async () => (await import('./run-orphans.ts')).runOrphans,
  },
  {
    name: 'doctor',
    usage: 'doctor [--backend URL] [--json]',
    summary: 'check that what it relies on works here',
    help: [
      '--backend URL   meet at this backend’s own lane, if it is free; without it, at a lane of no backend',
      '--json          each check as JSON',
      'Exit code 1 when a check fails.',
    ],
    options: { ...JSON_OPTION, backend: { type: 'string' } },
    argumentCount: 0,
    load: async () => (await import('./run-doctor.ts')).runDoctor,
  },
  {
    name: 'service',
    usage: 'service install|uninstall [--config F] [--port N] [--state-dir D] [--dry-run]',
    summary: 'run it as a service that starts with your session',
    help: [
      'install     writes a systemd user unit for `landlord serve` with these options, and starts it',
      'uninstall   stops it and removes the unit',
      '--dry-run   only say what would be written and run',
    ],
    options: { ...WHERE, config: { type: 'string' }, 'dry-run': { type: 'boolean' } },
    argumentCount: 1,
    load: async () => (await import('./run-service.ts')).runService,
  },
  {
    name: 'open',
    usage: 'open',
    summary: 'print an address that opens the page once',
    help: [WHERE_HELP],
    options: WHERE,
    argumentCount: 0,
    load: async () => (await import('./run-open.ts')).runOpen,
  },
  {
    name: 'demo',
    usage: 'demo [--port N] [--simulated] | demo --agents',
    summary: 'see it at work on a simulated card, in under a minute',
    help: [
      '--port N      the port of the demo’s page; default any free one',
      '--simulated   stand-ins play the models even where a llama-server is found',
      '--agents      another one: three agents on a card with room for one, first each for itself,',
      '              then all registered with the engine over the ledger socket',
      'It plays a morning twice, first only watched and then guarded, with a runtime, settings and',
      'models of its own. Your own servers, settings and card are not touched; nothing stays behind.',
    ],
    options: { port: { type: 'string' }, simulated: { type: 'boolean' }, agents: { type: 'boolean' } },
    argumentCount: 0,
    load: async () => (await import('./run-demo.ts')).runDemoCommand,
    handlesSignals: true,
  },
];

export function overview(): string {
  const width = Math.max(...COMMANDS.map((command) => command.name.length));
  return [
    'Usage: landlord COMMAND [OPTIONS]',
    '',
    'Guards the memory of one GPU shared by local LLMs, agents and the desktop.',
    '',
    ...COMMANDS.map((command) => `  ${command.name.padEnd(width)}  ${command.summary}`),
    '',
    '`landlord COMMAND --help` tells more; `landlord --version` prints the version.',
  ].join('\n');
}

export function usageLine(command: CommandInfo): string {
  return `Usage: landlord ${command.usage}`;
}

export function helpText(command: CommandInfo): string {
  const summary = `${command.summary.charAt(0).toUpperCase()}${command.summary.slice(1)}.`;
  return [usageLine(command), '', summary, '', ...command.help.map((line) => `  ${line}`)].join('\n');
}
