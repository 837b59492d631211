// Runs a session of a client library, a program of libraries/, against both servers and compares
// what it prints, step by step. The argument names the library.
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onBoth, programPath, runProgram } from './servers.mjs';
import { compareSession, plain } from './sessions.mjs';

const folder = join(dirname(fileURLToPath(import.meta.url)), 'libraries');
const at = (name) => join(folder, name);

/**
 * How to run each session: a program, by an environment variable or its name, and its arguments.
 */
const libraries = {
  python: {
    program: 'Python client (kubernetes)',
    runner: { variable: 'PYTHON', name: 'python3' },
    args: [at('python.py')],
    version: ['-c', 'import kubernetes; print(kubernetes.__version__)'],
  },
  javascript: {
    program: 'JavaScript client (@kubernetes/client-node)',
    runner: { variable: 'NODE', name: 'node' },
    args: [at('javascript.mjs')],
    version: [at('javascript.mjs'), '--version'],
  },
  go: {
    program: 'Go client (client-go)',
    runner: { variable: 'GO_SESSION', name: 'go-session' },
    args: [],
    version: ['--version'],
  },
};

const run = (command, args, env = {}) =>
  runProgram(command, args, { env: { ...process.env, ...env }, timeout: 300_000 });

async function play(server, { command, args }) {
  const { status, stdout, stderr } = await run(command, args, { KUBECONFIG: server.kubeconfig });
  const [, ...steps] = plain(stdout, server).split(/^## /m);
  const outputs = {};
  for (const step of steps) {
    const end = step.indexOf('\n');
    outputs[step.slice(0, end)] = step.slice(end + 1);
  }
  outputs.end = `exit ${status}\n${status === 0 ? '' : plain(stderr, server)}`;
  return outputs;
}

const name = process.argv[2];
const flags = process.env.PEERS_FLAGS ? process.env.PEERS_FLAGS.split(' ') : [];
const library = libraries[name];
if (library === undefined) {
  console.error(`usage: node libraries.mjs ${Object.keys(libraries).join(' | ')}`);
  process.exit(2);
}
const command = programPath(library.runner);
const version = command && (await run(command, library.version));
if (version?.status !== 0) {
  console.log(`skipped: needs ${library.program} and ${library.runner.variable} (see README.md)`);
} else {
  compareSession({
    name: `library-${name}${process.env.PEERS_SUFFIX ?? ''}`,
    program: library.program,
    version: version.stdout.trim(),
    script: 'libraries.mjs',
    what: flags.length === 0 ? 'A session' : `With ${flags.join(' ')}, a session`,
    step: 'steps',
    sides: await onBoth((server) => play(server, { command, args: library.args }), { flags }),
  });
}
