import { basename } from 'node:path/posix';

/**
 * image     makes pictures with a model of its own: holds gigabytes also while it works on nothing
 * game      a game, its launcher's child or its compositor
 * encoder   makes or changes video
 * server    a language model's server of a kind that has no adapter here
 * notebook  an interpreter somebody works in
 * browser, player, editor, desktop   part of the desktop
 */
export type ProgramSort =
  | 'image'
  | 'game'
  | 'encoder'
  | 'server'
  | 'notebook'
  | 'browser'
  | 'player'
  | 'editor'
  | 'desktop';

export interface KnownProgram {
  /** As people call it. */
  readonly name: string;
  readonly sort: ProgramSort;
}

export interface ProgramFacts {
  /** /proc/<pid>/comm, at most 15 characters. */
  readonly comm: string;
  /** Empty: not readable. */
  readonly argv: readonly string[];
  /** null: not readable. */
  readonly cwd: string | null;
}

/** What a process is, by its name, command line and folder; null: none that is known here. Pure. */
export function knownProgram(facts: ProgramFacts): KnownProgram | null {
  const comm = facts.comm.toLowerCase();
  return scripted(facts, comm) ?? game(facts, comm) ?? plain(facts, comm);
}

type Rule = readonly [pattern: RegExp, name: string, sort: ProgramSort];

/** Python programs by what they run and where: their own processes are all called `python3`. */
const SCRIPTS: readonly Rule[] = [
  [/\bcomfyui\b|\bcomfy-?ui\b|(?:^|[/\s])comfy (?:--\S+ )*launch/, 'ComfyUI', 'image'],
  [/\bsd[._-]?next\b|\bvladmandic\b/, 'SD.Next', 'image'],
  [
    /webui-(?:re)?forge\b|\bstable-diffusion-webui-\w*forge\b|\/forge\/(?:launch|webui)\.py/,
    'Forge',
    'image',
  ],
  [/\bstable-diffusion-webui\b|\ba1111\b/, 'Stable Diffusion web UI', 'image'],
  [/\binvoke-?ai(?:-web)?\b/, 'InvokeAI', 'image'],
  [/\bswarmui\b/, 'SwarmUI', 'image'],
  [/\bfooocus\b/, 'Fooocus', 'image'],
  [/\bkohya_ss\b|\bsd-scripts\b|\bonetrainer\b|\bai-toolkit\b/, 'image model training', 'image'],
  [/\bvllm\b/, 'vLLM', 'server'],
  [/\bsglang\b/, 'SGLang', 'server'],
  [/\btext-generation-(?:launcher|server|webui)\b/, 'text-generation', 'server'],
  [/\btabbyapi\b|\bexllama/, 'TabbyAPI', 'server'],
  [/\bkoboldcpp\b/, 'KoboldCpp', 'server'],
  [/\bipykernel(?:_launcher)?\b|\bjupyter/, 'Jupyter', 'notebook'],
  [/\bwhisper/, 'Whisper', 'server'],
];

const INTERPRETERS = /^(?:python[\d.]*|pypy[\d.]*|pt_main_thread|dotnet|node|uv|conda|bash|sh)$/;
/** They name their processes after themselves. */
const ITSELF = /^(?:comfyui|swarmui|invokeai|invokeai-web|vllm|sglang|fooocus|koboldcpp)/;

function scripted({ argv, cwd }: ProgramFacts, comm: string): KnownProgram | null {
  const program = basename(argv[0] ?? '').toLowerCase();
  if (!INTERPRETERS.test(comm) && !INTERPRETERS.test(program) && !ITSELF.test(comm) && !ITSELF.test(program))
    return null;
  // What it is told to run; names of models and folders further on say nothing of the program.
  const words = argv.slice(0, scriptEnd(argv)).join(' ').toLowerCase();
  const byWords = SCRIPTS.find(([pattern]) => pattern.test(`${comm} ${words}`));
  const isRelative = argv.slice(1).some((word) => /^[\w.-]+\.py$/.test(word));
  const byFolder =
    byWords ??
    (isRelative && cwd !== null ? SCRIPTS.find(([pattern]) => pattern.test(cwd.toLowerCase())) : undefined);
  return byFolder === undefined ? null : { name: byFolder[1], sort: byFolder[2] };
}

/** Past the script, or the module after `-m`. */
function scriptEnd(argv: readonly string[]): number {
  for (let index = 1; index < argv.length; index += 1) {
    const word = argv[index] ?? '';
    if (word === '-m') return index + 2;
    if (!word.startsWith('-')) return index + 2;
  }
  return argv.length;
}

const GAME_PROGRAMS: readonly Rule[] = [
  [/^gamescope/, 'gamescope', 'game'],
  [
    /^(?:retroarch|rpcs3|pcsx2|dolphin-emu|yuzu|suyu|citron|ryujinx|cemu|xemu|ppsspp|duckstation)/,
    '',
    'game',
  ],
  [
    /^(?:dota2|cs2|csgo_linux64|hl2_linux|factorio|minecraft|supertuxkart|0ad|openmw|srb2|xonotic)/,
    '',
    'game',
  ],
];

/** Games by Steam's folders, by Windows' executables under Wine or Proton, by their own names. */
function game({ argv }: ProgramFacts, comm: string): KnownProgram | null {
  const command = argv.join(' ').replaceAll('\\', '/');
  const steam = /\/steamapps\/common\/([^/]+)\//i.exec(command)?.[1];
  // Proton and Steam's own runtime lie in the same folder, and a game behind them has its own path later.
  const steamGames = [...command.matchAll(/\/steamapps\/common\/([^/]+)\//gi)]
    .map((match) => match[1] ?? '')
    .filter((name) => !/^(?:proton|steamlinuxruntime|steamworks)/i.test(name));
  const title = steamGames.at(-1);
  if (title !== undefined && title !== '') return { name: title, sort: 'game' };
  const executable = argv.map((word) => word.replaceAll('\\', '/')).find((word) => /\.exe$/i.test(word));
  const isWine =
    /^(?:wine|proton)/.test(comm) || comm.endsWith('.exe') || /^[a-z]:\//i.test(executable ?? '');
  if (executable !== undefined && isWine) {
    const name = basename(executable);
    // Wine's own desk, and Windows' own programs on Windows.
    if (/^(?:explorer|services|winedevice|plugplay|svchost|rpcss|conhost|steam|dwm)\.exe$/i.test(name))
      return null;
    return { name: name.replace(/\.exe$/i, ''), sort: 'game' };
  }
  const own = GAME_PROGRAMS.find(([pattern]) => pattern.test(comm));
  if (own !== undefined) return { name: own[1] === '' ? comm : own[1], sort: 'game' };
  if (steam !== undefined && /^(?:reaper|pressure-vessel)/.test(comm))
    return { name: 'a Steam game', sort: 'game' };
  return null;
}

const PLAIN: readonly Rule[] = [
  [
    /^(?:ffmpeg|jellyfin-ffmpeg|plex transcoder|handbrakecli|ghb|obs$|obs-studio|obs-ffmpeg-mux|gst-launch|melt$|kdenlive|shotcut|flowblade|avidemux|makemkv)/,
    '',
    'encoder',
  ],
  [/^(?:resolve$|davinci)/, 'DaVinci Resolve', 'encoder'],
  [/^blender/, 'Blender', 'image'],
  [/^(?:comfyui|swarmui|invokeai)/, '', 'image'],
  [/^(?:sd-server|stable-diffusi|sd-cli)/, 'stable-diffusion.cpp', 'image'],
  [
    /^(?:isolated web|web content|webextensions|rdd process|socket process|privileged cont)/,
    'firefox',
    'browser',
  ],
  [/^(?:firefox|librewolf|zen-?browser|zen-bin)/, 'firefox', 'browser'],
  [/^(?:chrome|google-chrome)/, 'chrome', 'browser'],
  [/^chromium/, 'chromium', 'browser'],
  [
    /^(?:brave|vivaldi|opera|msedge|microsoft-edge|epiphany|webkitwebproces|falkon|qtwebengine)/,
    '',
    'browser',
  ],
  [
    /^(?:mpv|vlc|totem|celluloid|haruna|kodi|smplayer|showtime|dragon$|strawberry|spotify|rhythmbox|elisa|clapper|amberol)/,
    '',
    'player',
  ],
  [
    /^(?:gimp|krita|darktable|rawtherapee|ansel|digikam|inkscape|photogimp|shotwell|gthumb|loupe|gwenview|affinity)/,
    '',
    'editor',
  ],
  [
    /^(?:xorg|x$|xwayland|kwin_|gnome-shell|plasmashell|mutter|sway|hyprland|niri|weston|wayfire|labwc|river$|cosmic-|cinnamon|xfwm4|marco|muffin|picom|gdm|sddm|lightdm)/,
    '',
    'desktop',
  ],
];

function plain({ argv }: ProgramFacts, comm: string): KnownProgram | null {
  const program = basename((argv[0] ?? '').split(' ')[0] ?? '').toLowerCase();
  const rule =
    PLAIN.find(([pattern]) => pattern.test(comm)) ?? PLAIN.find(([pattern]) => pattern.test(program));
  if (rule === undefined) return null;
  return { name: rule[1] === '' ? comm.replace(/-bin$/, '') : rule[1], sort: rule[2] };
}

/** Whether such a program is part of the desktop, whose memory is never asked for, or a job of its own. */
export function isDesktopSort(sort: ProgramSort): boolean {
  return sort === 'browser' || sort === 'player' || sort === 'editor' || sort === 'desktop';
}
