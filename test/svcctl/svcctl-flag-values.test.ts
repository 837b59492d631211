import { printsLikeKubectl } from '../clients/compare-with-kubectl.ts';

const map = (name: string) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, labels: { long: 'x' } },
});
const lines = (...texts: readonly string[]): [string][] => texts.map((text) => [text]);
const printed = '--dry-run=client -o';
const variables = `${printed} jsonpath={.spec.containers[0].env}`;

printsLikeKubectl(
  'flag-values',
  [
    ...lines(
      // lists, with quotes
      'create -f @files/one.json,"@files/a,b.json"',
      'get -f @files/one.json -o name -f "@files/a,b.json"',
      'get -f "@files/one.json',
      'get -f @files/o"ne.json',
      'get -f "@files/one.json"x',
      'get cm -o name -L "a,b',
      'create deployment d1 --image=a,b -o name',
      'create deployment d2 --image="a",b --image=c -o name',
      'create cm f1 --from-file=@files/a,b.json',
      'create cm f1 --from-file="@files/a,b.json" -o name',
      `create cm f2 --from-literal=a=b,c=d ${printed} jsonpath={.data}`,
      `create cm f2 --from-literal="a=b" ${printed} jsonpath={.data}`,
      `create role r --verb=get,"list" --resource=pods ${printed} jsonpath={.rules}`,
      'create role r --verb=ge"t --resource=pods',
      `create svc clusterip s --tcp=80:81,"90" ${printed} jsonpath={.spec.ports[*].port}`,
      'apply -f @files/one.json --prune --all --prune-allowlist=core/v1/ConfigMap,core/v1/Secret',
      'api-resources --categories=all"',
      'auth whoami --as=x --as-group=a,b -o jsonpath={.status.userInfo.groups}',
      // pairs
      `run q --image=i --env=A=b,c --env="D=e" ${variables}`,
      'debug q --image=i --env=A',
      'debug q --image=i --env=A,B=c=d',
      'debug q --image=i --set-image=a"=b,c=d',
      // integers and durations
      `create deployment d3 --image=a --replicas=0x2 ${printed} jsonpath={.spec.replicas}`,
      `create deployment d3 --image=a --port=010 ${printed} jsonpath={..containerPort}`,
      'create deployment d3 --image=a --replicas=2147483648',
      'create deployment d3 --image=a --replicas=08',
      'get cm --chunk-size=9223372036854775808',
      'get cm --chunk-size=',
      'get cm -o name --request-timeout=+50',
      'get cm --request-timeout=-5',
      'delete cm none --timeout=.5s',
      'delete cm none --timeout=1h1',
      'delete cm none --timeout=1y',
      // booleans
      'get cm -A=x',
      'get cm -o name --no-headers=T',
      'get cm --no-headers yes',
      'get cm -o name --show-labels --show-labels=false',
      // the syntax of flags
      'get cm ---x',
      'get cm --=x',
      'get cm -wAx',
      'get cm -L=',
      'get -f=',
      'get cm -n',
      'get cm -Aoname --field-selector=metadata.name=none',
      'create deployment d3 --image=a --replicas=x --unknown',
      'create deployment d3 --image=a --unknown --replicas=x',
    ),
    // how changes of labels are reported
    ...lines(
      'label cm one a=1 long-',
      'label cm one longer=x a-',
      'label cm one a=1 longer- --overwrite',
      'label cm one a-',
      'label cm one a-',
      'label cm one b=1 a-',
      'label cm one c-',
      'label cm one c- --dry-run=client',
      'label -f @files/one.json a=1 long- --local',
      'label -f @files/one.json a=1 long- --local --overwrite',
    ),
  ],
  { files: { 'one.json': map('one'), 'a,b.json': map('two') } },
);
