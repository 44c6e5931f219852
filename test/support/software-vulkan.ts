import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Mesa's Vulkan device that computes on the CPU: real offload without a graphics card. */
const ICD_FOLDER = '/usr/share/vulkan/icd.d';

/** The environment in which a process sees that device alone; null: it is not installed. */
export function softwareVulkan(): Readonly<Record<string, string>> | null {
  const driver = softwareDriver();
  if (driver === null) return null;
  return { GGML_VK_VISIBLE_DEVICES: '0', VK_DRIVER_FILES: driver, VK_ICD_FILENAMES: driver };
}

function softwareDriver(): string | null {
  try {
    const name = readdirSync(ICD_FOLDER).find((one) => one.startsWith('lvp_icd'));
    return name === undefined ? null : join(ICD_FOLDER, name);
  } catch {
    return null;
  }
}
