import { describe, expect, it } from 'vitest';
import { knownProgram } from '../../../electron/core/process/known-programs.ts';

type Row = readonly [
  comm: string,
  argv: readonly string[],
  cwd: string | null,
  name: string | null,
  sort?: string,
];

const ROWS: readonly Row[] = [
  // Image generators: all of them are called python.
  ['python3', ['/opt/venv/bin/python3', 'main.py', '--listen'], '/home/me/ComfyUI', 'ComfyUI', 'image'],
  ['python', ['python', '/home/me/apps/comfyui/main.py', '--port', '8189'], '/', 'ComfyUI', 'image'],
  [
    'python3.12',
    ['/data/SwarmUI/dlbackend/ComfyUI/venv/bin/python3.12', '-s', '/data/SwarmUI/dlbackend/ComfyUI/main.py'],
    null,
    'ComfyUI',
    'image',
  ],
  ['pt_main_thread', ['python', 'main.py'], '/srv/ComfyUI-master', 'ComfyUI', 'image'],
  ['python3', ['python3', '-m', 'comfyui.main'], '/', 'ComfyUI', 'image'],
  [
    'python3',
    ['python3', 'launch.py', '--api'],
    '/home/me/stable-diffusion-webui',
    'Stable Diffusion web UI',
    'image',
  ],
  ['python3', ['python3', '-u', 'launch.py'], '/home/me/stable-diffusion-webui-forge', 'Forge', 'image'],
  ['python3', ['python3', 'webui.py'], '/home/me/stable-diffusion-webui-reForge', 'Forge', 'image'],
  ['python3', ['python3', 'launch.py'], '/home/me/sdnext', 'SD.Next', 'image'],
  [
    'python3',
    ['/home/me/invokeai/.venv/bin/python3', '/home/me/invokeai/.venv/bin/invokeai-web'],
    '/home/me',
    'InvokeAI',
    'image',
  ],
  ['invokeai-web', ['/usr/bin/python3', '/usr/bin/invokeai-web'], '/', 'InvokeAI', 'image'],
  ['dotnet', ['dotnet', 'src/bin/live_release/SwarmUI.dll'], '/srv/SwarmUI', 'SwarmUI', 'image'],
  ['SwarmUI', ['./src/bin/live_release/SwarmUI'], '/srv/SwarmUI', 'SwarmUI', 'image'],
  ['blender', ['blender', '-b', 'scene.blend'], '/', 'Blender', 'image'],
  // Other servers and interpreters.
  [
    'python3',
    ['python3', '-m', 'vllm.entrypoints.openai.api_server', '--model', 'x/comfyui-lora'],
    '/',
    'vLLM',
    'server',
  ],
  ['VLLM::EngineCor', ['VLLM::EngineCore'], '/', 'vLLM', 'server'],
  [
    'python3',
    ['python3', '-m', 'ipykernel_launcher', '-f', 'k.json'],
    '/home/me/ComfyUI',
    'Jupyter',
    'notebook',
  ],
  // A script of one's own is nobody's, whatever it is given to work on.
  ['python3', ['python3', 'train.py', '--out', '/home/me/ComfyUI/models'], '/home/me/work', null],
  ['python3', ['python3', '-c', 'import torch'], '/home/me', null],
  // Games.
  [
    'Main',
    ['/home/me/.steam/steam/steamapps/common/Half-Life 2/hl2_linux', '-game'],
    '/',
    'Half-Life 2',
    'game',
  ],
  [
    'Cyberpunk2077.e',
    ['Z:\\mnt\\ssd\\SteamLibrary\\steamapps\\common\\Cyberpunk 2077\\bin\\x64\\Cyberpunk2077.exe'],
    null,
    'Cyberpunk 2077',
    'game',
  ],
  [
    'python3',
    [
      'python3',
      '/home/me/.steam/steamapps/common/Proton 9.0/proton',
      'waitforexitandrun',
      '/x/steamapps/common/Hades/Hades.exe',
    ],
    '/',
    'Hades',
    'game',
  ],
  ['wine64-preload', ['C:\\Games\\Gothic\\system\\Gothic.exe'], '/', 'Gothic', 'game'],
  ['explorer.exe', ['C:\\windows\\system32\\explorer.exe', '/desktop'], '/', null],
  ['gamescope-wl', ['gamescope', '-f', '--', 'game'], '/', 'gamescope', 'game'],
  ['dolphin-emu', ['dolphin-emu'], '/', 'dolphin-emu', 'game'],
  // Video.
  ['ffmpeg', ['ffmpeg', '-hwaccel', 'cuda', '-i', 'a.mkv'], '/', 'ffmpeg', 'encoder'],
  ['obs', ['obs'], '/', 'obs', 'encoder'],
  ['HandBrakeCLI', ['HandBrakeCLI', '-i', 'a'], '/', 'handbrakecli', 'encoder'],
  ['mpv', ['mpv', 'a.mkv'], '/', 'mpv', 'player'],
  ['vlc', ['/usr/bin/vlc'], '/', 'vlc', 'player'],
  // The desktop.
  ['Isolated Web Co', ['/usr/lib/firefox/firefox', '-contentproc'], '/', 'firefox', 'browser'],
  ['chrome', ['/opt/google/chrome/chrome', '--type=gpu-process'], '/', 'chrome', 'browser'],
  ['gimp-2.10', ['gimp'], '/', 'gimp-2.10', 'editor'],
  ['darktable', ['darktable'], '/', 'darktable', 'editor'],
  ['kwin_wayland', ['/usr/bin/kwin_wayland'], '/', 'kwin_wayland', 'desktop'],
  ['Xorg', ['/usr/lib/xorg/Xorg', ':0'], '/', 'xorg', 'desktop'],
  // Model servers with adapters of their own are none of these.
  ['llama-server', ['llama-server', '-m', 'x.gguf'], '/home/me/ComfyUI', null],
  ['ollama', ['ollama', 'serve'], '/', null],
  ['bash', ['bash'], '/home/me/ComfyUI', null],
];

describe('what a process on a card is', () => {
  for (const [comm, argv, cwd, name, sort] of ROWS)
    it(`${comm} ${argv.join(' ')} in ${cwd} is ${name}`, () => {
      expect(knownProgram({ comm, argv, cwd })).toEqual(name === null ? null : { name, sort });
    });
});
