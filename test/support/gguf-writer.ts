export * from '../../build/models/gguf-writer.ts';
