/** Facts about the types of `discovery`; made by scripts/facts/generate.mjs, do not edit. */
export const discoveryFacts = `
@v1
!AddressType ["FQDN","IPv4","IPv6"]
#EndpointSlice k n i=1.21
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
addressType 4 AddressType
endpoints 2 []Endpoint l=atomic
ports 3 []EndpointPort o l=atomic
#Endpoint
addresses 1 []string l=set
conditions 2 EndpointConditions e
hostname 3 *string e o
targetRef 4 *core.v1.ObjectReference e o
deprecatedTopology 5 {}string e o
nodeName 6 *string e o
zone 7 *string e o
hints 8 *EndpointHints e o
#EndpointConditions
ready 1 *bool e o
serving 2 *bool e o
terminating 3 *bool e o
#EndpointHints
forZones 1 []ForZone e l=atomic
#ForZone
name 1 string
#EndpointPort s=atomic
name 1 *string e
protocol 2 *core.v1.Protocol e
port 3 *int32 e
appProtocol 4 *string e o
#EndpointSliceList k i=1.21
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []EndpointSlice
@v1beta1
#EndpointSlice k n i=1.16 d=1.21 x=1.25 r=discovery,v1,EndpointSlice
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
addressType 4 string t=v1beta1.AddressType
endpoints 2 []Endpoint l=atomic
ports 3 []EndpointPort o l=atomic
#Endpoint
addresses 1 []string l=set
conditions 2 EndpointConditions e
hostname 3 *string e o
targetRef 4 *core.v1.ObjectReference e o
topology 5 {}string e o
nodeName 6 *string e o
hints 7 *EndpointHints e o
#EndpointConditions
ready 1 *bool e o
serving 2 *bool e o
terminating 3 *bool e o
#EndpointHints
forZones 1 []ForZone e l=atomic
#ForZone
name 1 string
#EndpointPort
name 1 *string e
protocol 2 *core.v1.Protocol e
port 3 *int32 e
appProtocol 4 *string e o
#EndpointSliceList k i=1.16 d=1.21 x=1.25 r=discovery,v1,EndpointSlice
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []EndpointSlice
`;
