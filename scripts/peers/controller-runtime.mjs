// Runs controller-runtime's own test suites with each server as envtest's kube-apiserver.
//
// CONTROLLER_RUNTIME names its source folder in a GOPATH that holds the libraries it needs; the
// README says how to make one. GO names the go command.
import { join } from 'node:path';
import { runSuites } from './ginkgo-suites.mjs';

const source = process.env.CONTROLLER_RUNTIME;

const suites = [
  'pkg/client',
  'pkg/cache',
  'pkg/envtest',
  'pkg/manager',
  'pkg/builder',
  'pkg/webhook',
  'pkg/controller',
  'pkg/cluster',
  'pkg/source',
  'pkg/internal/controller',
  'pkg/internal/recorder',
  'pkg/internal/source',
];

runSuites({
  name: `controller-runtime${process.env.PEERS_SUFFIX ?? ''}`,
  source,
  gopath: source && join(source, '..', '..', '..'),
  suites,
  variable: 'CONTROLLER_RUNTIME',
  program: 'controller-runtime, its own suites on envtest',
  version: process.env.CONTROLLER_RUNTIME_VERSION,
  script: 'controller-runtime.mjs',
  what: `The suites of ${suites.map((suite) => suite.replace('pkg/', '')).join(', ')}.`,
});
