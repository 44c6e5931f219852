import { stripSourceLines } from './capture-text.ts';
import {
  type MigInstance,
  NO_GPU_FIGURES,
  type NvidiaGpu,
  type NvidiaProcess,
  type NvidiaTrouble,
  parseProcessType,
} from './nvidia.ts';
import { memoryAnswerOf } from './nvidia-memory.ts';
import { nvidiaTroublesIn } from './nvidia-trouble.ts';
import {
  MIB,
  parseBytes,
  parseCount,
  parsePciAddress,
  parsePercent,
  parseSwitch,
  parseWord,
} from './quantity.ts';
import { parseXml, type XmlElement, xmlAll, xmlAt, xmlText } from './xml.ts';

export interface NvidiaReport {
  readonly driverVersion: string | null;
  readonly gpus: readonly NvidiaGpu[];
  /** All types, desktop programs too. */
  readonly processes: readonly NvidiaProcess[];
  readonly troubles: readonly NvidiaTrouble[];
}

/**
 * Output of `nvidia-smi -q -x`, any schema from v4 on: the elements used here kept their names, and
 * one that a version lacks is unknown. A file cut short gives what it holds.
 */
export function parseNvidiaSmiXml(text: string): NvidiaReport {
  const body = stripSourceLines(text);
  const root = parseXml(body);
  const elements = xmlAll(root, 'gpu');
  const gpus = elements.map((element, position) => gpuOf(element, position));
  return {
    driverVersion: parseWord(xmlAll(root, 'driver_version')[0]?.text) ?? kmdVersion(root),
    gpus,
    processes: elements.flatMap((element, position) => processesOf(element, gpus[position])),
    troubles: elements.length === 0 ? nvidiaTroublesIn(body) : nvidiaTroublesIn(actionsOf(elements)),
  };
}

function gpuOf(element: XmlElement, position: number): NvidiaGpu {
  const word = (name: string): string | null => xmlText(element, 'fb_memory_usage', name);
  const memory = (name: string): number | null => parseBytes(word(name), MIB);
  return {
    ...NO_GPU_FIGURES,
    index: parseCount(xmlText(element, 'index')) ?? position,
    uuid: parseWord(xmlText(element, 'uuid')),
    pciAddress:
      parsePciAddress(element.attributes.id) ?? parsePciAddress(xmlText(element, 'pci', 'pci_bus_id')),
    name: parseWord(xmlText(element, 'product_name')),
    totalBytes: memory('total'),
    reservedBytes: memory('reserved'),
    usedBytes: memory('used'),
    freeBytes: memory('free'),
    memoryAnswer: memoryAnswerOf(['total', 'used', 'free'].map(word)),
    busyPercent: parsePercent(xmlText(element, 'utilization', 'gpu_util')),
    memoryBusyPercent: parsePercent(xmlText(element, 'utilization', 'memory_util')),
    displayActive: parseSwitch(xmlText(element, 'display_active')),
    driverModel: parseWord(xmlText(element, 'driver_model', 'current_dm')),
    migEnabled: parseSwitch(xmlText(element, 'mig_mode', 'current_mig')),
    mig: xmlAll(element, 'mig_device').map(migOf),
  };
}

function migOf(element: XmlElement): MigInstance {
  return {
    gpuInstanceId: parseCount(xmlText(element, 'gpu_instance_id')),
    computeInstanceId: parseCount(xmlText(element, 'compute_instance_id')),
    totalBytes: parseBytes(xmlText(element, 'fb_memory_usage', 'total'), MIB),
    usedBytes: parseBytes(xmlText(element, 'fb_memory_usage', 'used'), MIB),
  };
}

function processesOf(element: XmlElement, gpu: NvidiaGpu | undefined): readonly NvidiaProcess[] {
  // Schema v5 and older call the list `compute_processes`.
  const lists = [xmlAt(element, 'processes'), xmlAt(element, 'compute_processes')];
  const found: NvidiaProcess[] = [];
  for (const row of lists.flatMap((list) => (list === null ? [] : xmlAll(list, 'process_info')))) {
    const pid = parseCount(xmlText(row, 'pid'));
    if (pid === null) continue;
    found.push({
      gpuIndex: gpu?.index ?? null,
      gpuUuid: gpu?.uuid ?? null,
      pciAddress: gpu?.pciAddress ?? null,
      gpuInstanceId: parseCount(xmlText(row, 'gpu_instance_id')),
      computeInstanceId: parseCount(xmlText(row, 'compute_instance_id')),
      pid,
      type: parseProcessType(xmlText(row, 'type')),
      name: parseWord(xmlText(row, 'process_name')),
      bytes: parseBytes(xmlText(row, 'used_memory'), MIB),
    });
  }
  return found;
}

function kmdVersion(root: XmlElement): string | null {
  return parseWord(xmlAll(root, 'kmd_version')[0]?.text);
}

/** Only the fields that speak of a fault: process names may hold any words. */
function actionsOf(elements: readonly XmlElement[]): string {
  return elements
    .map((element) => `GPU Recovery Action : ${xmlText(element, 'gpu_recovery_action') ?? 'None'}`)
    .join('\n');
}
