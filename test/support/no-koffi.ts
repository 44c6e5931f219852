/** `--import` this to have a Node without koffi. */
import { registerHooks } from 'node:module';

registerHooks({
  resolve(specifier, context, next) {
    if (specifier === 'koffi') throw new Error("Cannot find module 'koffi'");
    return next(specifier, context);
  },
});
