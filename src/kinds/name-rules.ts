export {
  breaks,
  configMapKey,
  dns1035Label,
  dnsLabel,
  dnsSubdomain,
  environmentName,
  inRange,
  labelValue,
  type NameRule,
  pathSegment,
  portName,
  qualifiedName,
} from '../meta/names.ts';
