//! vap-status-controller: a true, complete and alertable status for every ValidatingAdmissionPolicy.
