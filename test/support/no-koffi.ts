/** `--import` this to have a Node without koffi: neither the package nor, where it is bundled, its binary. */
import { registerHooks } from 'node:module';

registerHooks({
  resolve(specifier, context, next) {
    if (specifier === 'koffi' || specifier.startsWith('@koromix/') || specifier.endsWith('.node'))
      throw new Error(`Cannot find module '${specifier}'\nRequire stack:\n- ${import.meta.filename}`);
    return next(specifier, context);
  },
});
