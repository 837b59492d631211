// The entry point of the single executable (`npm run executable`), which contains Node and the
// programs.
const { chmodSync, mkdtempSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { basename, join } = require('node:path');
const { getAsset, getRawAsset } = require('node:sea');
const { setFlagsFromString } = require('node:v8');
const { runBundle } = require('./load-bundle.js');

/** Loads Node's own modules, and the native addons inside the executable. */
function requireInside(name) {
  if (!name.endsWith('.node')) return require(name);
  // The host loads machine code only from files, and does not need the file afterwards.
  const folder = mkdtempSync(join(tmpdir(), 'wheelhouse-addon-'));
  try {
    const file = join(folder, basename(name));
    writeFileSync(file, Buffer.from(getRawAsset(name)), { mode: 0o600 });
    chmodSync(file, 0o700);
    const addon = { exports: {} };
    process.dlopen(addon, file);
    return addon.exports;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
// There are no packages beside the executable.
requireInside.resolve = { paths: () => [] };

function load(name) {
  return runBundle({
    source: Buffer.from(getRawAsset(name)).latin1Slice(),
    code: Buffer.from(getAsset(`${name}.cache`)),
    path: join(process.execPath, name),
    require: requireInside,
  }).exports;
}

if (process.argv[2] === 'svcctl') {
  process.argv.splice(2, 1);
  load('svcctl.cjs').main();
} else {
  const { main } = load('wheelhouse.cjs');
  setFlagsFromString('--max-inlined-bytecode-size-cumulative=4000');
  main(process.argv.slice(2)).then((code) => process.exit(code));
}
