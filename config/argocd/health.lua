-- The health of a ValidatingAdmissionPolicy, for Argo CD. argocd-cm.yaml describes its installation.
-- Only conditions of the current generation are evaluated. status.observedGeneration is not sufficient, because
-- kube-controller-manager may write this field before the conditions are updated.
local health = {status = "Progressing", message = "waiting for vap-status-controller to check this generation"}
if obj.status == nil or obj.status.conditions == nil then
  return health
end
for _, condition in ipairs(obj.status.conditions) do
  if condition.observedGeneration == obj.metadata.generation then
    if condition.type == "Stalled" and condition.status == "True" then
      return {status = "Degraded", message = condition.message}
    end
    if condition.type == "Ready" then
      health.message = condition.message
      if condition.status == "True" then
        health.status = "Healthy"
      end
    end
  end
end
return health
