// `npm run executable`: puts Node and the programs into one file, for users without Node. Its first
// argument names the output file, by default `dist/wheelhouse`.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build as bundle } from 'esbuild';
import { inject } from 'postject';
import { build, bundleSvcctl } from './build.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
/** The marker by which Node recognizes that its own file contains a program. */
const sentinelFuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';
const segment = process.platform === 'darwin' ? { machoSegmentName: 'NODE_SEA' } : {};

/** Packages whose machine code the executable contains; each has a file per platform. */
const addons = ['fs-native-extensions'];

/** The files inside the executable, by the names under which the program requests them. */
function assetsIn(built, work) {
  const assets = {};
  for (const name of ['wheelhouse.cjs', 'wheelhouse.cjs.cache']) assets[name] = join(built, name);
  for (const name of ['svcctl.cjs', 'svcctl.cjs.cache']) assets[name] = join(work, name);
  const platform = `${process.platform}-${process.arch}`;
  for (const name of addons) {
    const path = `${name}/prebuilds/${platform}/${name}.node`;
    const file = join(root, 'node_modules', path);
    if (!existsSync(file)) throw new Error(`the package ${name} has nothing for ${platform}`);
    assets[path] = file;
  }
  const names = readdirSync(join(built, 'console'));
  for (const name of names) assets[`console/${name}`] = join(built, 'console', name);
  const list = join(work, 'console.json');
  writeFileSync(list, JSON.stringify(names));
  assets['console.json'] = list;
  return assets;
}

/** Stores the machine code of a bundle, which is loaded but not run, unless it already exists. */
function keepCode(path) {
  if (existsSync(`${path}.cache`)) return;
  const code = `const { loadBundle } = require(${JSON.stringify(join(root, 'bin', 'load-bundle.js'))});
    const { script } = loadBundle(${JSON.stringify(path)});
    require('node:fs').writeFileSync(${JSON.stringify(`${path}.cache`)}, script.createCachedData());`;
  run(process.execPath, ['-e', code]);
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  if (status !== 0) throw error ?? new Error(`${command} ${args.join(' ')} ended with ${status}`);
}

/**
 * Writes the executable. It contains the Node that runs this script, so that the stored machine
 * code fits.
 * @param options.outfile the output file
 * @param options.built a folder that `build` has created; created if absent
 */
export async function buildExecutable({ outfile, built }) {
  // Inside node_modules, because the bundle needs packages while its machine code is created.
  const cache = join(root, 'node_modules', '.cache');
  mkdirSync(cache, { recursive: true });
  const work = mkdtempSync(join(cache, 'executable-'));
  try {
    const programs = built ?? join(work, 'dist');
    if (built === undefined) await build({ finished: programs });
    keepCode(join(programs, 'wheelhouse.cjs'));
    const svcctl = join(work, 'svcctl.cjs');
    await bundleSvcctl(svcctl);
    keepCode(svcctl);
    const main = join(work, 'main.cjs');
    const entryPoints = [join(root, 'bin', 'executable.js')];
    await bundle({ entryPoints, outfile: main, bundle: true, platform: 'node', format: 'cjs' });
    const blob = join(work, 'blob');
    const assets = assetsIn(programs, work);
    const config = join(work, 'config.json');
    writeFileSync(
      config,
      JSON.stringify({ main, output: blob, disableExperimentalSEAWarning: true, assets }),
    );
    run(process.execPath, ['--experimental-sea-config', config]);
    mkdirSync(dirname(outfile), { recursive: true });
    const draft = `${outfile}.${process.pid}.tmp`;
    copyFileSync(process.execPath, draft);
    chmodSync(draft, 0o755);
    await inject(draft, 'NODE_SEA_BLOB', readFileSync(blob), { sentinelFuse, ...segment });
    renameSync(draft, outfile);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const outfile = resolve(process.argv[2] ?? join(root, 'dist', 'wheelhouse'));
  await buildExecutable({ outfile });
  console.log(`wrote ${outfile}`);
}
