export * from '../../build/models/kv-measured.ts';
