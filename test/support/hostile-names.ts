/** Names that mean to be something else wherever they are put into a text. */
export const HOSTILE_NAMES: readonly string[] = [
  `it's "quoted"`,
  'a\nforged: line',
  'a\r\nset-cookie: a=b',
  '$(touch /tmp/pwned) `id` ; rm -rf ~ && true | cat',
  '../../../etc/passwd',
  '--force',
  '-rf',
  '\u001b[2J\u001b]0;title\u0007\u001b[31mred',
  '\u009b31m C1 control',
  'left \u202egnp.exe right',
  'isolate \u2067abc',
  'zero\u200bwidth\ufeff',
  '\u2028line\u2029separators',
  '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>',
  '&amp; &lt;b&gt; <b>bold</b>',
  'a: b # c',
  '{ flow: [1, 2] }',
  '*alias &anchor !tag %directive @at',
  '~',
  'null',
  '\u{1f999}\u{1f468}\u200d\u{1f469}\u200d\u{1f467} emoji',
  'naïve \u0645\u0631\u062d\u0628\u0627 \u4f60\u597d',
  '__proto__',
  'constructor',
  '%s %d %n',
  'nul\0byte',
];

/** What no terminal, log line or tray may be given of them: controls, and marks that reorder or hide. */
export const UNSAFE = /[\p{Cc}\u202a-\u202e\u2066-\u2069\u2028\u2029\u200b\ufeff]/u;
