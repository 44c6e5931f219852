import type { ProcessMemory } from '../devices/sample.ts';
import { isDesktopSort } from '../process/known-programs.ts';

/**
 * Whether a process that is none of ours belongs to the desktop or is a job of its own. Names decide
 * first, then what the driver says of it: NVIDIA types a graphics client G and a compute client C, and
 * calls compositors and video players C+G or even C; kfd lists compute clients only.
 */
export function programKind(use: ProcessMemory): 'desktop' | 'foreign' {
  if (use.sort !== undefined) return isDesktopSort(use.sort) ? 'desktop' : 'foreign';
  const name = programName(use.name).toLowerCase();
  if (DESKTOP.test(name)) return 'desktop';
  if (JOBS.test(name) || name.endsWith('.exe')) return 'foreign';
  // What lives in system memory is listed by residence, not by use of a GPU: only known jobs stand out.
  if (use.source === 'statm') return 'desktop';
  if (use.type === 'C' || use.source === 'kfd') return 'foreign';
  if (use.type === null && RUNTIMES.test(name)) return 'foreign';
  return 'desktop';
}

/** `/usr/bin/python3 main.py` and `C:\Games\game.exe` are `python3` and `game.exe`; a bare name stays as it is. */
export function programName(name: string): string {
  const path = name.trim();
  const command = path.startsWith('/') ? (path.split(/\s/)[0] ?? path) : path;
  const last = command.split(/[/\\]/).at(-1) ?? '';
  return last === '' ? path || 'unknown' : last;
}

/** Compositors, shells, browsers and players; `comm` cuts names at 15 characters. */
const DESKTOP =
  /^(xorg|x|xwayland|kwin|gnome-|plasma|mutter|sway|hyprland|niri|weston|wayfire|labwc|cosmic-|cinnamon|xfwm|marco|muffin|picom|gdm|sddm|lightdm|firefox|isolated web|web content|webkit|chrom|google-chrome|brave|vivaldi|opera|msedge|electron|code|discord|slack|spotify|thunderbird|mpv|vlc|totem|celluloid|explorer\.exe|dwm\.exe|searchhost|nautilus|dolphin|konsole|kitty|alacritty|wezterm|ghostty|vram-landlord)/;

/** Jobs that hold memory of their own: model servers, image generators, renderers, games. */
const JOBS =
  /^(comfyui|ollama|llama-|llama_|llamafile|llama$|lm studio|lm-studio|lmstudio|llmster|lemond|lemonade|koboldcpp|vllm|sglang|trtllm|tritonserver|text-generation|text-embeddings|local-?ai|(?:ggml-)?rpc-server|ray::|frigate\.|fahcore|xmrig|whisper|stable-diffusion|sd-server|invokeai|blender|davinci|resolve|hashcat|ffmpeg|gamescope|wine|proton|steam_app|retroarch|cs2|dota2)/;

/** Interpreters: on a GPU they are jobs, unless the driver says they draw. */
const RUNTIMES = /^(python|ipython|jupyter|pt_main_thread|julia|java|node$|uv$)/;
