// `npm start`: starts a server on ./wheelhouse-data and prints how to use it. Further arguments
// (`npm start -- --secure-port=7443`) go to `wheelhouse serve`. RBAC authorizes requests, unless
// an argument selects other modes.
import { spawn } from 'node:child_process';
import { dirname, join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const args = process.argv.slice(2);
const isSet = (flag) => args.some((arg) => arg === flag || arg.startsWith(`${flag}=`));
const defaults = [
  `--data-dir=${join(root, 'wheelhouse-data')}`,
  '--authorization-mode=RBAC',
].filter((flag) => !isSet(flag.split('=', 1)[0]));
const consoleIsOff = args.includes('--web-console=false');
const server = spawn(
  process.execPath,
  [join(root, 'bin', 'wheelhouse.js'), 'serve', ...defaults, ...args],
  { stdio: ['inherit', 'inherit', 'pipe'] },
);

let listening;
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => server.kill(signal));
createInterface({ input: server.stderr }).on('line', (line) => {
  console.error(line);
  const entry = parse(line);
  if (entry?.msg === 'listening') listening = entry;
  if (entry?.msg === 'ready' && listening !== undefined) explain(listening);
});
server.on('exit', (code, signal) => {
  process.exitCode = code ?? (signal === null ? 1 : 130);
});

function parse(line) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function explain({ url, adminKubeconfig }) {
  const kubeconfig = relative(process.cwd(), adminKubeconfig) || adminKubeconfig;
  console.log(`
Wheelhouse is ready at ${url}. The administrator's kubeconfig is ${kubeconfig}.

  export KUBECONFIG=${kubeconfig}
  node bin/svcctl.js get namespaces
  curl -k '${url}/readyz?verbose'
${consoleIsOff ? '' : `\nA console is at ${url}/console/; the token it asks for is in that kubeconfig.\n`}
kubectl works too, with a server started by \`npm start -- --dialect=kubernetes\`.
`);
}
