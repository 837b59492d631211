// Runs command lines of the program whose launcher the first argument names: each line of standard
// input has the arguments as JSON, and a NUL and the exit code end its output on standard error.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const require = createRequire(process.argv[2]);
const { loadBundle } = require('./load-bundle.js');
const { requireBuild } = require('./require-build.js');
const { main } = loadBundle(requireBuild('wheelhouse.cjs')).exports;

for await (const line of createInterface({ input: process.stdin })) {
  const code = await main(JSON.parse(line));
  // A process otherwise runs one command line, which may listen to signals until its end.
  for (const signal of ['SIGTERM', 'SIGINT']) process.removeAllListeners(signal);
  process.stderr.write(`\0${code}\n`);
}
process.exit(0);
