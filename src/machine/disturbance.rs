//! What would disturb a measurement here, each as a sentence that ends in its remedy.

use super::description::Machine;

/// The warnings for `machine`; empty where nothing is known to disturb.
pub fn disturbances(machine: &Machine) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(governor) = machine.governor.as_deref().filter(|g| *g != "performance") {
        found.push(format!(
            "the frequency governor is {governor}: the clock follows the load; \
             set it for one run with `stackphase machine --set governor=performance -- …`"
        ));
    }
    if machine.boost == Some(true) {
        found.push(
            "boost is on: the clock depends on temperature and neighbours, which the guard \
             watches; for equal absolute times use `stackphase machine --set boost=off -- …`"
                .to_owned(),
        );
    }
    if machine.smt_active == Some(true) {
        found.push(
            "sibling hardware threads are active: a neighbour takes issue slots, which the guard \
             watches; leave the sibling idle"
                .to_owned(),
        );
    }
    if machine.guest == Some(true) {
        found.push(
            "this is a guest: the host may slow it for seconds without a trace; \
             look at the share of disturbed blocks, and repeat on another day"
                .to_owned(),
        );
    }
    let processors = machine.permitted_cpus.len();
    if let Some(load) = machine.load_average.filter(|&load| load > 0.5 && processors > 0) {
        found.push(format!(
            "the load average is {load} on {processors} permitted processors: \
             wait until nothing else runs"
        ));
    }
    if processors == 1 {
        found.push(
            "only one processor is permitted: everything shares it with the measurement; \
             permit another one"
                .to_owned(),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_disturbance_has_its_sentence() {
        let mut machine = Machine::describe();
        machine.governor = Some("powersave".to_owned());
        machine.boost = Some(true);
        machine.smt_active = Some(true);
        machine.guest = Some(true);
        machine.load_average = Some(9.0);
        machine.permitted_cpus = vec![3];
        assert_eq!(disturbances(&machine).len(), 6);

        machine.governor = Some("performance".to_owned());
        machine.boost = Some(false);
        machine.smt_active = None;
        machine.guest = None;
        machine.load_average = None;
        machine.permitted_cpus = vec![0, 1];
        assert_eq!(disturbances(&machine), Vec::<String>::new(), "unknown is not a disturbance");
    }
}
